"""A model that is larger than the budget is no mistake, but it is said, with its key, its line and what to do."""

from qmsup.config import oversize, parse, parse_and_remark

HEAD = "vramBudgetGB: 24\nramBudgetGB: 8\nmodels:\n"
CARD = (
    "26 GB is more than vramBudgetGB, 24 GB: all others that may stop do for it, and it is loaded over the budget,"
    " or refused (507) where the card was read and has no such room;"
    " lower models.big.estVramGB, or what the model takes (-c, -ngl), or raise vramBudgetGB"
)
MACHINE = (
    "9.5 GB is more than ramBudgetGB, 8 GB: all of the RAM pool that may stop does for it, and it is loaded all the"
    " same; lower models.slow.estRamGB, if it is less, or raise ramBudgetGB"
)


def model(name: str, sizes: str) -> str:
    return f"  {name}:\n    cmd: llama-server --port ${{PORT}}\n    {sizes}\n"


def remarks(text: str) -> tuple[str, ...]:
    return parse_and_remark(text, name="f.yaml")[1]


def test_it_is_told_at_its_key() -> None:
    text = HEAD + model("fits", "estVramGB: 24") + model("big", "estVramGB: 26")

    assert remarks(text) == (f"f.yaml:9: models.big.estVramGB: {CARD}",)


def test_in_the_ram_pool_ram_counts_alone() -> None:
    pool = "groups: {cpu: {members: [slow], pool: ram}}\n"
    sizes = "estRamGB: 9.5\n    estVramGB: 30"

    assert remarks(HEAD + model("slow", sizes) + pool) == (
        f"f.yaml:6: models.slow.estRamGB: {MACHINE}",
    )


def test_what_a_model_offloads_counts_where_there_is_such_a_pool() -> None:
    pool = "groups: {cpu: {members: [other], pool: ram}}\n"
    models = model("slow", "estRamGB: 9.5") + model("other", "estRamGB: 1")

    assert remarks(HEAD + models) == ()
    assert remarks(HEAD + models + pool) == (f"f.yaml:6: models.slow.estRamGB: {MACHINE}",)


def test_without_a_budget_nothing_is_too_large_nor_by_a_matrix() -> None:
    models = "models:\n" + model("big", "estVramGB: 26")
    matrix = "matrix: {sets: {one: big}}\n"

    assert remarks(models) == ()
    assert remarks(HEAD + model("big", "estVramGB: 26") + matrix) == ()


def test_programs_are_told_the_numbers() -> None:
    [found] = oversize(parse(HEAD + model("big", "estVramGB: 26")))

    assert (found.model, found.size, found.budget) == ("big", 26 * 1024, 24 * 1024)
