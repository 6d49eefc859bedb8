"""What a search ends with when it has found something."""


class FoundError(Exception):
    """Something that must hold did not.

    Attributes:
        story: what happened, as short as it could be made.
        again: the command that repeats it.
    """

    def __init__(self, title: str, *, story: str, again: str) -> None:
        super().__init__(title)
        self.story = story
        self.again = again

    def report(self) -> str:
        """For people: what, how, and how to see it again."""
        return f"FOUND: {self}\n\n{self.story.rstrip()}\n\nTo repeat it: {self.again}"
