import { type LucideIcon, Plus } from "lucide-react";
import { Link } from "wouter";

interface Props {
  to: string;
  label: string;
  /** Why nothing may be made; null where it may. */
  refusal: string | null;
  icon?: LucideIcon;
}

/** Leads to where a new one is made. */
export function NewButton({ to, label, refusal, icon: Icon = Plus }: Props) {
  const inside = <><Icon aria-hidden size={16} /> {label}</>;
  if (refusal !== null) return <button type="button" className="primary" disabled title={refusal}>{inside}</button>;
  return <Link className="button primary" href={to}>{inside}</Link>;
}
