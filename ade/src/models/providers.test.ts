import { expect, test } from "vitest";
import { checkOf, priceWords, providerOf } from "./providers";

function form(fields: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

test("a key is sent only where one was typed", () => {
  const fields = form({ name: " shop ", provider_type: "openai", base_url: "", api_key: "" });
  expect(providerOf(fields)).toEqual({ name: "shop", provider_type: "openai" });
});

test("a check needs no name", () => {
  expect(checkOf(form({ name: "shop", provider_type: "openai", api_key: "k" }))).toEqual({ provider_type: "openai", api_key: "k" });
});

test("prices are for a million tokens", () => {
  expect(priceWords({ input: 2, output: 10, source: "table" })).toBe("$2 in, $10 out");
  expect(priceWords({ input: 2, output: null, source: "table" })).toBe("$2 in, $? out");
  expect(priceWords(null)).toBe("no price");
});
