import type { LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes } from "react";

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "aria-label"> {
  /** What it does: read aloud, and shown when the pointer rests on it. */
  label: string;
  icon: LucideIcon;
}

/** A button with a picture alone. */
export function IconButton({ label, icon: Icon, className = "", ...rest }: Props) {
  return (
    <button type="button" className={`icon-button ${className}`} aria-label={label} title={label} {...rest}>
      <Icon aria-hidden size={18} />
    </button>
  );
}
