import { useRefusal } from "../shell/access-gate";
import { ListScreen } from "../ui/list-screen";
import { RowLink } from "../ui/row-link";
import { AllModels } from "./all-models";
import { NewProvider, ProviderDetail } from "./provider-detail";
import { useProviders } from "./providers";

/** Providers, and the models that they offer. */
export default function ModelsPage({ providerId }: { providerId: string | null }) {
  return (
    <ListScreen
      title="Models"
      noun="provider"
      to="/models"
      open={providerId}
      query={useProviders()}
      refusal={useRefusal("own")}
      renderFirst={(all) => (
        <RowLink
          to="/models/all"
          isOpen={providerId === "all"}
          title="All models"
          note={`${all.reduce((sum, each) => sum + each.model_count, 0)} models of ${all.length} providers`}
        />
      )}
      row={(provider) => ({
        title: provider.name,
        note: `${provider.provider_type} · ${provider.model_count} models${provider.provider_category === "byok" ? " · yours" : ""}`,
        end: provider.sync_error && <span className="status failed">Failed</span>,
      })}
      renderDetail={(provider) => <ProviderDetail key={`${provider.id} ${provider.version}`} provider={provider} />}
      pages={{ new: <NewProvider />, all: <AllModels providerName={null} /> }}
      hint="Choose a provider for its models, or all models."
    />
  );
}
