"""What the tests of a host need: a model that says what they put down for it.

with scripted(Call("look_up", {"order": 77}), Say("It is on its way.")) as script:
    ...  # a run of a persona whose model is offline:scripted
script.requests[0]["messages"]
"""

from protege.inference.scripts import Call, Calls, Fail, Say, Script, scripted

__all__ = ["Call", "Calls", "Fail", "Say", "Script", "scripted"]
