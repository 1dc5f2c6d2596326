import { useState } from "react";
import { DataTable } from "../ui/data-table";
import { Loaded } from "../ui/loaded";
import { whole } from "../ui/numbers";
import { type Model, priceWords, useAllModels, useEmbeddingModels, useLearnedWindows } from "./providers";

/** Models with their windows and prices, and where each of these is known from. */
export function AllModels({ providerName }: { providerName: string | null }) {
  const models = useAllModels();
  const embeddings = useEmbeddingModels();
  const learned = useLearnedWindows();
  const [text, setText] = useState("");
  const isOfProvider = (each: { provider_name: string; handle: string }): boolean =>
    (providerName === null || each.provider_name === providerName) && each.handle.toLowerCase().includes(text.toLowerCase());
  const windows = new Map(learned.data?.map((each) => [each.model, each.tokens]));
  return (
    <div className={providerName === null ? "detail" : ""}>
      {providerName === null && <h2>All models</h2>}
      <input type="search" aria-label="Search models" placeholder="Search models" value={text} onChange={(event) => setText(event.target.value)} />
      <Loaded query={models} what="the models">
        {(all) => {
          const wanted = all.filter(isOfProvider);
          return wanted.length ? <ModelTable models={wanted} windows={windows} /> : <p className="empty">No model{text ? " fits" : " is offered"}.</p>;
        }}
      </Loaded>
      <Loaded query={embeddings} what="the embedding models">
        {(all) =>
          all.some(isOfProvider) ? (
            <>
              <h3>Embedding models</h3>
              <ul className="rows">
                {all.filter(isOfProvider).map((each) => (
                  <li key={each.handle} className="file-line small"><code className="cut">{each.handle}</code><span className="muted">{whole(each.embedding_dim)} dimensions</span></li>
                ))}
              </ul>
            </>
          ) : null}
      </Loaded>
    </div>
  );
}

function ModelTable({ models, windows }: { models: Model[]; windows: ReadonlyMap<string, number> }) {
  const windowWords = (model: Model): string | null => {
    const learned = windows.get(model.handle);
    return learned ? `learned: ${whole(learned)}` : model.context_window_source;
  };
  return (
    <DataTable
      label="Models"
      columns={[{ name: "Handle" }, { name: "Window" }, { name: "Price of a million tokens" }, { name: "Can" }]}
      rows={models.map((model) => ({
        key: model.handle,
        cells: [
          <code key="handle">{model.handle}</code>,
          <>{whole(model.context_window)} <span className="muted small">{windowWords(model)}</span></>,
          <>{priceWords(model.price)} <span className="muted small">{model.price?.source}</span></>,
          <span key="can" className="small">{abilitiesOf(model)}</span>,
        ],
      }))}
    />
  );
}

function abilitiesOf(model: Model): string {
  const able = Object.entries(model.capabilities ?? {}).filter(([, can]) => can);
  return able.map(([name]) => name.replaceAll("_", " ")).join(", ") || "not told";
}
