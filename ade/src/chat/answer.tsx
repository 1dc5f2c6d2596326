import { lazy, memo, Suspense } from "react";
import { blocksOf } from "./markdown-blocks";

const loaded = import("./markdown");
const Markdown = lazy(() => loaded);

/** What an agent says, as Markdown. While it comes, only its last block is parsed again. */
export function Answer({ text, isLive }: { text: string; isLive: boolean }) {
  const blocks = isLive ? blocksOf(text) : [text];
  return (
    <Suspense fallback={<div className="plain">{text}</div>}>
      {blocks.map((block, at) => <Block key={at} text={block} />)}
    </Suspense>
  );
}

const Block = memo(function Block({ text }: { text: string }) {
  return <Markdown text={text} />;
});
