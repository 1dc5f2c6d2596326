import { useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field } from "../ui/field";
import { Loaded } from "../ui/loaded";
import { ProblemBox } from "../ui/problem-box";
import { useAction } from "../ui/use-action";
import { bodyOf, EXAMPLES, moment, type Schedule, textOf, useSchedules, wordsOf } from "./schedules";

/** Messages that an agent gets at their time. */
export function SchedulesPane({ agentId }: { agentId: string }) {
  const schedules = useSchedules(agentId);
  const refusal = useRefusal("write");
  return (
    <div className="pane">
      <p className="muted small">At its time, each message is sent to the main conversation, in the background.</p>
      {refusal === null ? <NewSchedule agentId={agentId} /> : <p className="muted small">{refusal}</p>}
      <Loaded query={schedules} what="the schedules">
        {(all) => (
          <ul className="rows">
            {all.map((each) => <Row key={each.id} agentId={agentId} schedule={each} refusal={refusal} />)}
            {all.length === 0 && <li className="empty">Nothing is scheduled.</li>}
          </ul>
        )}
      </Loaded>
    </div>
  );
}

function Row({ agentId, schedule, refusal }: { agentId: string; schedule: Schedule; refusal: string | null }) {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <li className="file">
      <p className="plain">{textOf(schedule)}</p>
      <p className="small">
        <strong>{wordsOf(schedule.schedule)}</strong>{" "}
        <span className="muted">
          {schedule.next_scheduled_time ? `next: ${moment(schedule.next_scheduled_time, schedule.timezone)}` : "It is over."}
        </span>
      </p>
      {schedule.last_error && <p className="error-text small">It could not begin: {schedule.last_error}</p>}
      <div className="file-line">
        {schedule.last_run_id && <Link href={`/runs/${schedule.last_run_id}`} className="small">Its last run</Link>}
        <span className="spacer" />
        {refusal === null && (
          <AskButton
            question="Delete this schedule?"
            act={() => action.run(async () => {
              await api().agents.schedule.delete(schedule.id, { agent_id: agentId });
              await queries.invalidateQueries({ queryKey: ["schedules", agentId] });
            })}
          >
            <Trash2 aria-hidden size={14} /> <span className="hidden-text">Delete this schedule</span>
          </AskButton>
        )}
      </div>
      {action.problem && <ProblemBox title="Could not delete it" problem={action.problem} />}
    </li>
  );
}

function NewSchedule({ agentId }: { agentId: string }) {
  const [isOpen, setOpen] = useState(false);
  const [kind, setKind] = useState<"recurring" | "one-time">("recurring");
  const action = useAction();
  const queries = useQueryClient();
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>New schedule</button>;
  return (
    <DraftForm
      name={`schedule-${agentId}`}
      className="form new-schedule"
      label="New schedule"
      action={action}
      failure="Could not schedule it"
      send={async (fields) => {
        await api().agents.schedule.create(agentId, bodyOf(fields) as never, { maxRetries: 0 });
        await queries.invalidateQueries({ queryKey: ["schedules", agentId] });
        setOpen(false);
      }}
    >
      <Field label="Message"><textarea name="text" rows={2} required /></Field>
      <Field label="When">
        <select name="kind" value={kind} onChange={(event) => setKind(event.target.value as typeof kind)}>
          <option value="recurring">Again and again</option>
          <option value="one-time">Once</option>
        </select>
      </Field>
      {kind === "recurring" ? (
        <Field label="Minute, hour, day, month, weekday" note="In the time zone of the agent.">
          <input name="cron" required list="cron-examples" placeholder="0 9 * * MON-FRI" autoComplete="off" />
        </Field>
      ) : (
        <Field label="Day and time" note="In your time zone."><input name="at" type="datetime-local" required /></Field>
      )}
      <datalist id="cron-examples">{EXAMPLES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</datalist>
      <div className="form-end">
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
        <button type="submit" className="primary" aria-disabled={action.isBusy}>Schedule</button>
      </div>
    </DraftForm>
  );
}
