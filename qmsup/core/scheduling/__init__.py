"""The scheduler has one door: `Scheduler.handle(event, now) -> list[Effect]`. Events happened, effects are orders."""
