"""LangChain and LiteLLM with an agent as their model: program.py URL AGENT_ID. Prints what they got."""

import json
import sys

import litellm
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class Person(BaseModel):
    """Who is asked about."""

    name: str


@tool
def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def langchain(base: str, agent: str) -> dict:
    model = ChatOpenAI(base_url=base, api_key="none", model=agent)
    by_responses = ChatOpenAI(
        base_url=base, api_key="none", model=agent, use_responses_api=True, use_previous_response_id=True
    )
    vectors = OpenAIEmbeddings(
        base_url=base, api_key="none", model="loci/hash", check_embedding_ctx_length=False
    ).embed_documents(["one", "two"])
    return {
        "invoked": model.invoke("say invoked").content,
        "streamed": "".join(chunk.content for chunk in model.stream("say streamed")),
        "stopped": model.invoke("say one END two", stop=["END"]).content,
        "called": model.bind_tools([double], tool_choice="double").invoke("call double").tool_calls[0]["args"],
        "formed": model.with_structured_output(Person, method="function_calling").invoke("call Person").name,
        "by_schema": model.with_structured_output(Person, method="json_schema").invoke("as Person").name,
        "responded": by_responses.invoke("say responded").text,
        "dimensions": [len(vector) for vector in vectors],
    }


def lite(base: str, agent: str) -> dict:
    about = {"model": f"openai/{agent}", "api_base": base, "api_key": "none"}
    say = [{"role": "user", "content": "say hello"}]
    chunks = litellm.completion(messages=say, stream=True, **about)
    response = litellm.responses(input="say responded", **about)
    form = litellm.completion(messages=[{"role": "user", "content": "as Person"}], response_format=Person, **about)
    return {
        "completed": litellm.completion(messages=say, **about).choices[0].message.content,
        "streamed": "".join(chunk.choices[0].delta.content or "" for chunk in chunks),
        "formed": json.loads(form.choices[0].message.content)["name"],
        "responded": response.output[-1].content[0].text,
    }


if __name__ == "__main__":
    url, agent_id = sys.argv[1:]
    print(json.dumps({made.__name__: made(f"{url}/openai/v1", agent_id) for made in (langchain, lite)}))
