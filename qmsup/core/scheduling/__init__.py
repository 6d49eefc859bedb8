"""The scheduler has one door: `Scheduler.handle(event, now) -> list[Effect]`. Events happened, effects are orders.

| question | module |
| --- | --- |
| what can happen, what can be ordered? | `events`, `lasting` (one of them), `effects` |
| may this request be served, and if not, why? | `admission`: one function, asked on arrival and for the line |
| who waits, in which order? | `line`, `places` (who is told), `waiting` (how one comes and goes) |
| what becomes of a request? | `requests` |
| what becomes of the line after an event? | `walks` |
| is this model busy? is an idle one kept for somebody? | `leases`, `jobs` (taken on purpose), `holds`, `lending` |
| for how long may it be idle? | `ttl` |
| who has waited long enough to come before others? | `closers`, `claims`; `obstacles` tells behind whom one waits |
| what is loaded, and what stops for it? | `swaps`, `residency` (the orders), `children` (the reports) |
| is there room for it on the GPU? | `memory` (what is known), `readings` (what is done about news) |
| what goes when others want the GPU's memory? | `shedding` |
| what does an operator's wish do? | `unload`, `pins`, `draining`, `reload`, `law` (what it leaves), `shutdown` |
| what happens when time passes? | `deadlines` |
| what is known? | `state`, `records`, `stock`; `views` shows it, `invariants` checks it |

A handler changes the state and leaves its orders there. What may help somebody who waits *stirs* the line; the line is
looked at once, when the handler is done. So no handler needs to know who waits, and none can forget to look.
"""
