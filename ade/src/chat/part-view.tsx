import { Lightbulb } from "lucide-react";
import { memo, useEffect, useMemo, useState } from "react";
import { Answer } from "./answer";
import type { Image, NotePart, Part, ThoughtPart } from "./parts";
import { blobOf } from "./pictures";
import { ToolView } from "./tool-view";

/** Beyond so many characters what a person wrote is folded. */
const LONGEST = 8_000;

interface Props {
  part: Part;
  /** Whether its run goes on. */
  isLive: boolean;
}

/** One part of a conversation. */
export const PartView = memo(function PartView({ part, isLive }: Props) {
  switch (part.kind) {
    case "user":
      return (
        <div className="bubble-row">
          <div className="bubble" data-kind="user">
            <span className="hidden-text">You: </span>
            {part.images.map((image, at) => <Picture key={at} image={image} />)}
            <UserText text={part.text} />
          </div>
        </div>
      );
    case "assistant":
      return (
        <div className="answer" data-kind="assistant">
          {part.speaker && <strong className="small">{part.speaker}</strong>}
          <Answer text={part.text} isLive={isLive} />
        </div>
      );
    case "thought":
      return <Thought part={part} isLive={isLive} />;
    case "tool":
      return <ToolView call={part} isLive={isLive} />;
    case "note":
      return <Note part={part} />;
  }
});

/** What a person wrote; of a very long text the beginning, until all of it is asked for. */
function UserText({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (!text) return null;
  const isFolded = text.length > LONGEST && !isWhole;
  return (
    <>
      <div className="plain">{isFolded ? `${text.slice(0, LONGEST)} ...` : text}</div>
      {isFolded && <button type="button" onClick={() => setWhole(true)}>Show all {text.length.toLocaleString("en")} characters</button>}
    </>
  );
}

function Thought({ part, isLive }: { part: ThoughtPart; isLive: boolean }) {
  if (part.hidden) return <p className="thought muted"><Lightbulb aria-hidden size={14} /> Thought, which the provider keeps to itself</p>;
  return (
    <details className="thought" data-kind="thought">
      <summary><Lightbulb aria-hidden size={14} /> {isLive && !part.text ? "Thinking" : "Thought"}<span className="cut preview">{part.text}</span></summary>
      <div className="plain">{part.text}</div>
    </details>
  );
}

function Note({ part }: { part: NotePart }) {
  if (!part.text) return <p className="note divider">{part.label}</p>;
  return (
    <details className="note">
      <summary>{part.label}</summary>
      <pre className="plain">{part.text}</pre>
    </details>
  );
}

/** A picture is shown as a blob, and given up when it is out of view; one that lies elsewhere is a link. */
function Picture({ image }: { image: Image }) {
  const url = useMemo(
    () => (image.data ? URL.createObjectURL(blobOf(image.data, image.mediaType)) : null),
    [image.data, image.mediaType],
  );
  useEffect(
    () => () => {
      if (url) URL.revokeObjectURL(url);
    },
    [url],
  );
  if (url) return <img className="picture" src={url} alt="Sent by you" />;
  if (image.link && /^https?:/.test(image.link)) {
    return <a href={image.link} target="_blank" rel="noopener noreferrer">Picture: {image.link}</a>;
  }
  return <span className="muted">[picture]</span>;
}
