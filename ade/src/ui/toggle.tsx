import { useState } from "react";

interface Props {
  label: string;
  isOn: boolean;
  isDisabled: boolean;
  title?: string | undefined;
  /** Stores the choice; it is shown at once, and taken back where it could not be stored. */
  change: (isOn: boolean) => Promise<unknown>;
}

/** A choice that is stored as it is made. */
export function Toggle({ label, isOn, isDisabled, title, change }: Props) {
  const [wanted, setWanted] = useState<boolean | null>(null);
  return (
    <label className="choice small" title={title}>
      <input
        type="checkbox"
        checked={wanted ?? isOn}
        disabled={isDisabled}
        onChange={(event) => {
          setWanted(event.target.checked);
          void change(event.target.checked).finally(() => setWanted(null));
        }}
      />
      {label}
    </label>
  );
}
