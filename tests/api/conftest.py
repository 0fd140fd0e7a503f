import pytest
from pytest_django import Settings


@pytest.fixture
def desk(settings: Settings) -> None:
    """The host's hook puts every caller into the tenant `desk`, which the factories' rows belong to."""
    settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": "tests.api.callers.of_desk"}
