import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

/** An account at a vendor, or a server of models. */
export interface Provider {
  id: string;
  name: string;
  provider_type: string;
  base_url: string | null;
  region: string | null;
  api_version: string | null;
  has_key: boolean;
  version: number;
  sync_error: string | null;
  last_synced: string | null;
  model_count: number;
  provider_category: "base" | "byok" | null;
}

export interface Model {
  handle: string;
  display_name: string;
  provider_name: string;
  context_window: number;
  context_window_source: string | null;
  capabilities: Record<string, boolean> | null;
  price: { input: number | null; output: number | null; source: string | null } | null;
}

export interface EmbeddingModel {
  handle: string;
  provider_name: string;
  embedding_dim: number;
}

export interface LearnedWindow {
  model: string;
  tokens: number;
}

export function useProviders() {
  return useQuery({
    queryKey: ["providers"],
    queryFn: () => api().get<Provider[]>("/v1/providers", { query: { limit: 200 } }),
  });
}

export function useAllModels() {
  return useQuery({
    queryKey: ["all-models"],
    queryFn: async () => (await api().models.list()) as unknown as Model[],
  });
}

export function useEmbeddingModels() {
  return useQuery({
    queryKey: ["embedding-models"],
    queryFn: async () => (await api().models.embeddings.list()) as unknown as EmbeddingModel[],
  });
}

export function useLearnedWindows() {
  return useQuery({ queryKey: ["learned-windows"], queryFn: () => api().get<LearnedWindow[]>("/v1/learned-windows") });
}

/** Returns what a form says of a provider; keys only where they were typed: what is stored is never shown. */
export function providerOf(fields: FormData): Record<string, string> {
  const names = ["name", "provider_type", "base_url", "region", "api_version", "api_key", "access_key"];
  return Object.fromEntries(
    names.map((name) => [name, String(fields.get(name) ?? "").trim()]).filter(([, value]) => value),
  ) as Record<string, string>;
}

/** Returns what can be asked of a provider before it is stored: all but its name. */
export function checkOf(fields: FormData): Record<string, string> {
  const { name: _, ...rest } = providerOf(fields);
  return rest;
}

/** Returns dollars for a million tokens, in and out. */
export function priceWords(price: Model["price"]): string {
  if (!price || (price.input === null && price.output === null)) return "no price";
  return `$${price.input ?? "?"} in, $${price.output ?? "?"} out`;
}
