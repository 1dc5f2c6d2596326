import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { RowLink } from "../ui/row-link";
import { Split } from "../ui/split";
import { AllModels } from "./all-models";
import { NewProvider, ProviderDetail } from "./provider-detail";
import { useProviders } from "./providers";

/** Providers, and the models that they offer. */
export default function ModelsPage({ providerId }: { providerId: string | null }) {
  const providers = useProviders();
  const refusal = useRefusal("own");
  const open = providers.data?.find((each) => each.id === providerId);
  const inside = <><Plus aria-hidden size={16} /> New provider</>;
  const detail = (): ReactNode => {
    if (providerId === "new") return <NewProvider />;
    if (providerId === "all") return <AllModels providerName={null} />;
    if (!providerId || providers.isPending) return null;
    return open ? <ProviderDetail key={`${open.id} ${open.version}`} provider={open} /> : <p className="empty">There is no such provider.</p>;
  };
  return (
    <Split
      title="Models"
      to="/models"
      hint="Choose a provider for its models, or all models."
      head={
        <>
          <title>Models · Loci</title>
          <span className="spacer" />
          {refusal ? (
            <button type="button" className="primary" disabled title={refusal}>{inside}</button>
          ) : (
            <Link className="button primary" href="/models/new">{inside}</Link>
          )}
        </>
      }
      list={
        <Loaded query={providers} what="the providers">
          {(all) => (
            <ul className="rows">
              <RowLink to="/models/all" isOpen={providerId === "all"} title="All models" note={`${all.reduce((sum, each) => sum + each.model_count, 0)} models of ${all.length} providers`} />
              {all.map((each) => (
                <RowLink
                  key={each.id}
                  to={`/models/${each.id}`}
                  isOpen={each.id === providerId}
                  title={each.name}
                  note={`${each.provider_type} · ${each.model_count} models${each.provider_category === "byok" ? " · yours" : ""}`}
                  end={each.sync_error && <span className="status failed">Failed</span>}
                />
              ))}
            </ul>
          )}
        </Loaded>
      }
      detail={detail()}
    />
  );
}
