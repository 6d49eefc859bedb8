"""What load logs of many builds and cards say. The lines are in the forms that the programs print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.vram.load_log import LoadFigures, Source, read
from qmsup.units import MiB

# llama-server b10434 on a CPU, at verbosity 4.
CPU_TODAY = """\
0.00.010.461 I llama_context: n_ctx                 = 2048
0.00.011.804 I load_tensors:   CPU_Mapped model buffer size =   176.08 MiB
0.00.012.210 I llama_context:        CPU  output buffer size =     0.01 MiB
0.00.012.256 I llama_kv_cache:        CPU KV buffer size =    24.00 MiB
0.00.012.770 I llama_kv_cache: size =   24.00 MiB (  1024 cells,   2 layers,  2/2 seqs), K (f16):   12.00 MiB
0.00.015.774 I sched_reserve:        CPU compute buffer size =    20.01 MiB
"""
TWO_CARDS_OF_2024 = """\
llm_load_tensors: offloaded 41/41 layers to GPU
llm_load_tensors:        CPU buffer size =  1640.62 MiB
llm_load_tensors:      CUDA0 buffer size =  5434.38 MiB
llm_load_tensors:      CUDA1 buffer size = 13989.53 MiB
..........................................................
llama_new_context_with_model: n_ctx      = 4096
llama_kv_cache_init:      CUDA0 KV buffer size =  1536.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  3584.00 MiB
llama_new_context_with_model: KV self size  = 5120.00 MiB, K (f16): 2560.00 MiB, V (f16): 2560.00 MiB
llama_new_context_with_model:  CUDA_Host  output buffer size =     1.95 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   672.01 MiB
llama_new_context_with_model:      CUDA1 compute buffer size =   672.02 MiB
"""
# A recurrent model with a window, behind journald and a wrapper's own time stamps.
ROCM_BEHIND_LOGGERS = """\
Dec 02 11:57:01 box llama-server[24689]: load_tensors:        ROCm0 model buffer size = 16386.94 MiB
[2026-07-07T18:04:47Z] 0.02.703.038 I load_tensors:    ROCm_Host model buffer size =   682.03 MiB
llama_context: n_ctx                 = 32768
llama_kv_cache:      ROCm0 KV buffer size =   768.00 MiB
llama_kv_cache:      ROCm0 KV buffer size =    32.00 MiB
llama_memory_recurrent:      ROCm0 RS buffer size =   301.50 MiB
llama_adapter_lora_init_impl:      ROCm0 LoRA buffer size =     8.00 MiB
sched_reserve:      ROCm0 compute buffer size =  1219.00 MiB
sched_reserve:  ROCm_Host compute buffer size =   288.05 MiB
"""
VULKAN = """\
load_tensors:      Vulkan0 model buffer size =  4461.52 MiB
load_tensors:          CPU model buffer size =   497.11 MiB
init:    Vulkan0 KV buffer size =   192.00 MiB
llama_context:    Vulkan0 compute buffer size =  1174.00 MiB
llama_context: Vulkan_Host compute buffer size =    18.01 MiB
"""
METAL = """\
load_tensors: MTL0_Mapped model buffer size =  4000.50 MiB
load_tensors:   CPU_Mapped model buffer size =   100.00 MiB
llama_kv_cache:       MTL0 KV buffer size =    18.00 MiB
llama_context:       MTL0 compute buffer size =   404.00 MiB
llama_context:        CPU compute buffer size =    15.15 MiB
"""
# `-sm row`, a repacked part, and a machine that helps out over the network.
SPLIT_AND_REMOTE = """\
llm_load_tensors:  CUDA_Split model buffer size =  3820.94 MiB
llm_load_tensors: CPU_AARCH64 model buffer size =    12.00 MiB
llm_load_tensors: RPC[10.0.2.242:50052] model buffer size = 97323.94 MiB
llm_load_tensors: RPC0[10.0.2.242:50052] model buffer size = 10.00 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =   179.06 MiB
"""
DRAFT_AND_ENCODER = """\
load_tensors:        CUDA0 model buffer size =  1000.00 MiB
llama_context: n_ctx                 = 4096
llama_kv_cache:      CUDA0 KV buffer size =   100.00 MiB
sched_reserve:      CUDA0 compute buffer size =    30.00 MiB
load_tensors:        CUDA0 model buffer size =   200.00 MiB
llama_context: n_ctx                 = 4096
llama_kv_cache:      CUDA0 KV buffer size =    20.00 MiB
sched_reserve:      CUDA0 compute buffer size =    30.00 MiB
clip_ctx: CLIP using CUDA0 backend
load_hparams: model size:         209.31 MiB
load_hparams: metadata size:      0.23 MiB
alloc_compute_meta:      CUDA0 compute buffer size =   195.19 MiB
alloc_compute_meta:        CPU compute buffer size =     2.75 MiB
"""
BUFFERS = {
    "a CPU": (CPU_TODAY, 0, 221, {}),
    "two cards in 2024": (TWO_CARDS_OF_2024, 25888, 1643, {"CUDA0": 7643, "CUDA1": 18246}),
    "windows, recurrence, an adapter": (ROCM_BEHIND_LOGGERS, 18716, 971, {"ROCm0": 18716}),
    "Vulkan": (VULKAN, 5828, 516, {"Vulkan0": 5828}),
    "Metal": (METAL, 4423, 116, {"MTL0": 4423}),
    "what is on another machine": (SPLIT_AND_REMOTE, 4000, 12, {"CUDA": 3821, "CUDA0": 180}),
    "draft model, image encoder": (DRAFT_AND_ENCODER, 1785, 3, {"CUDA0": 1785}),
    "all cards as one": (
        "load_tensors:       Meta() model buffer size = 85338.41 MiB",
        85339,
        0,
        {"Meta()": 85339},
    ),
    "a card that holds nothing": (
        "load_tensors: CPU model buffer size = 10.50 MiB\nx: CUDA0 KV buffer size = 0.00 MiB",
        0,
        11,
        {},
    ),
    "an encoder before the model": (
        "clip_model_load: CLIP using CUDA backend\nclip_model_load: model size:     595.49 MB",
        596,
        0,
        {"CUDA": 596},
    ),
}


@pytest.mark.parametrize("log", BUFFERS)
def test_buffers_are_summed_by_card_and_what_is_in_the_boxs_memory_apart(log: str) -> None:
    text, gpu, ram, cards = BUFFERS[log]

    assert read(text) == LoadFigures(
        source=Source.BUFFERS,
        gpu=MiB(gpu),
        ram=MiB(ram),
        cards={name: MiB(size) for name, size in cards.items()},
    )


def test_a_compute_buffer_reserved_anew_counts_once_at_its_largest() -> None:
    text = VULKAN + "llama_context:    Vulkan0 compute buffer size =  1200.00 MiB\n"

    figures = read(text + "llama_context:    Vulkan0 compute buffer size =  1100.00 MiB\n")

    assert figures is not None
    assert figures.gpu == 4462 + 192 + 1200


def test_each_context_of_a_model_has_its_compute_buffer() -> None:
    second = (
        "llama_context: n_ctx  = 512\nllama_context:    Vulkan0 compute buffer size =  10.00 MiB\n"
    )

    figures = read(VULKAN + second)

    assert figures is not None
    assert figures.gpu == 5838


def test_a_rehearsal_without_weights_does_not_count() -> None:
    rehearsal = """\
load_tensors:        CUDA0 model buffer size =     0.00 MiB
llama_context: n_ctx                 = 2048
llama_kv_cache:      CUDA0 KV buffer size =     0.00 MiB
sched_reserve:      CUDA0 compute buffer size =   898.00 MiB
"""

    figures = read(rehearsal + rehearsal + DRAFT_AND_ENCODER)

    assert figures is not None
    assert figures.gpu == 1785
    assert read(rehearsal) is None


def test_figures_inside_json_lines_are_found() -> None:
    line = '{"type":"log","level":"info","msg":"load_tensors:        CUDA0 model buffer size =   577.22 MiB"}'

    figures = read(line)

    assert figures is not None
    assert figures.cards == {"CUDA0": MiB(578)}


ROWS = (
    '{"type":"fit_memory_breakdown","data":{"unit":"MiB","rows":['
    '{"kind":"device","name":"CUDA0","total":24077,"free":945,"self":%d,"model":17904,"context":384,"compute":898},'
    '{"kind":"host","name":"Host","self":219,"model":176,"context":24,"compute":19}]}}'
)


def test_the_last_projection_in_json_counts() -> None:
    figures = read(f"{ROWS % 30000}\nsomething else\n{ROWS % 19187}\n")

    assert figures == LoadFigures(
        source=Source.PROJECTION, gpu=MiB(19187), ram=MiB(219), cards={"CUDA0": MiB(19187)}
    )


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"fit_memory_breakdown","data":{"rows":[{"name":"CUDA0","self":"much"}]}}',
        '{"type":"fit_memory_breakdown","data":{"rows":[{"name":"CUDA0","self":1e999}]}}',
        '{"type":"fit_memory_breakdown","data":{"rows":[{"name":"CUDA0"}]}}',
        '{"type":"fit_memory_breakdown","data":[]}',
        '{"type":"fit_memory_breakdown","data":{"rows":[{"name":"CUDA0","self":-5}]}}',
        '{"type":"fit_memory_breakdown","data":{"rows":[{"name":"CUDA0","self":5},{"name":"CUDA1"}]}}',
        '{"type":"fit_memory_breakdown","data":{"unit":"GiB","rows":[{"name":"CUDA0","self":5}]}}',
        '{"type":"fit_memory_breakdown","da',
        '{"type":"fit_memory_breakdown","data":' + "[" * 1900,
        '"fit_memory_breakdown"',
    ],
)
def test_a_projection_that_cannot_be_read_says_nothing(line: str) -> None:
    assert read(line) is None


def test_the_last_table_of_a_projection_counts() -> None:
    head = (
        "common_memory_breakdown_print: | memory breakdown [MiB] | total   free    self   model |\n"
    )
    text = f"""\
{head}x: |   - CUDA0 (RTX 5090)   | 32606 = 30991 + (30000 =     0 +       0 +    4205) +       -2590 |
x: |   - CUDA1 (RTX 3090)   | 24575 = 23332 + (17829 =  1177 +   15360 +    1292) +      -16586 |
{head}x: |   - CUDA0 (RTX 5090)   | 11165 = 8702 + (10001 =  9814 +     134 +      51) + 17592186036877 |
x: |   - Host               |                  25094 =  1502 +   21504 +    2088                |
"""

    assert read(text) == LoadFigures(
        source=Source.PROJECTION, gpu=MiB(10001), ram=MiB(25094), cards={"CUDA0": MiB(10001)}
    )


def test_what_was_allocated_goes_before_what_was_projected() -> None:
    figures = read(f"{ROWS % 19187}\n{VULKAN}")

    assert figures is not None
    assert figures.source is Source.BUFFERS


@pytest.mark.parametrize("unit", ["MB", " MB", " MiB"])
def test_the_plan_of_an_image_server_is_read_in_mib(unit: str) -> None:
    plan = (
        "[INFO ] stable-diffusion.cpp:486  - total params memory size = 13145.92MB "
        "(VRAM 3827.08MB, RAM 9318.83MB): clip 9318.83MB(RAM), unet 3732.51MB(VRAM), vae 94.57MB(VRAM)"
    )

    plan = plan.replace("MB", unit)

    assert read(plan) == LoadFigures(source=Source.PLAN, gpu=MiB(3828), ram=MiB(9319))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.00.010.461 I srv  llama_server: model loaded\n",
        "unet params backend buffer size =  2179.71 MB(VRAM) (686 tensors)",
        "load_hparams: model size:         209.31 MiB",
        "x: CUDA0 model buffer size = MiB",
        "x: CUDA0 model buffer size = 12.00 MiB" + "." * 2000,
    ],
)
def test_a_log_without_figures_says_nothing(text: str) -> None:
    assert read(text) is None


NOBODYS = {
    "a buffer": "x: CUDA0 model buffer size = 10.00 MiB\nx: CUDA0 KV buffer size = {}.00 MiB",
    "an encoder": "clip_ctx: CLIP using CUDA0 backend\nload_hparams: model size: {} MiB",
    "a row": '{{"fit_memory_breakdown":1,"data":{{"rows":[{{"name":"CUDA0","self":{}}}]}}}}',
    "a table": "memory breakdown [MiB]\n|   - CUDA0 (A) | 9 = 4 + ({} = 0 + 0 + 0) + 1 |",
    "a plan": "total params memory size = 1.00MB (VRAM {}MB, RAM 0.00MB)",
}


@pytest.mark.parametrize("line", NOBODYS.values(), ids=NOBODYS)
@pytest.mark.parametrize("size", ["17592186040561", "9" * 100, "9" * 400], ids=len)
def test_a_size_that_no_box_has_is_believed_of_none(line: str, size: str) -> None:
    assert read(line.format(size)) is None
    assert read(line.format("500")) is not None


def test_what_was_projected_stands_where_what_was_allocated_cannot_be() -> None:
    figures = read(f"{ROWS % 19187}\nx: CUDA0 model buffer size = 17592186040561.00 MiB\n")

    assert figures is not None
    assert figures.source is Source.PROJECTION


_WORDS = (
    *' \n\r:|=(){}"0.7',
    *("CUDA0", "CPU", "RPC[", "model ", "KV ", "buffer size = ", "1.5 MiB", "x: n_ctx = 5"),
    *("9" * 400, "memory breakdown [MiB]", "|   - CUDA0 |", ROWS % 5),
    *TWO_CARDS_OF_2024.split("\n"),
)
_PIECES = st.sampled_from(_WORDS)


@given(st.lists(_PIECES | st.text(max_size=5), max_size=40).map("".join))
def test_whatever_a_log_holds_it_can_be_read(text: str) -> None:
    figures = read(text)

    assert figures is None or figures.gpu >= 0
