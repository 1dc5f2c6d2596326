"""The AI memory SDK, over an old release of the official client: program.py URL. Prints what it keeps."""

import json
import sys
import time

import ai_memory_sdk
from letta_client import Letta


def main(url: str) -> dict:
    ai_memory_sdk.Letta = lambda token=None: Letta(base_url=url, token=token)
    memory = ai_memory_sdk.Memory(api_key="none", subject_id="user_sarah")
    memory.initialize_memory(label="preferences", description="What she likes.", value="Likes cats")
    run_id = memory.add_messages([{"role": "user", "content": "I love dogs"}])
    client = Letta(base_url=url, token="none")
    while (status := client.runs.retrieve(run_id).status) not in ("completed", "failed", "cancelled"):
        time.sleep(0.05)
    return {
        "run": status,
        "kept": memory.get_memory("preferences"),
        "shown": memory.get_memory("preferences", prompt_formatted=True),
        "agents": len(client.agents.list(tags=["subj:user_sarah"])),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
