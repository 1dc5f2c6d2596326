import type { ComponentProps } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const ADDRESS = /^(https?:|mailto:)/i;

/** Markdown as elements: no HTML of the text becomes HTML of the page, and nothing is loaded from elsewhere. */
export default function Markdown({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={[remarkGfm]} urlTransform={address} components={COMPONENTS} skipHtml={false}>
      {text}
    </ReactMarkdown>
  );
}

function address(url: string): string {
  return ADDRESS.test(url) ? url : "";
}

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    href ? <a href={href} target="_blank" rel="noopener noreferrer">{children}</a> : <span>{children}</span>,
  // The address of a picture can carry away what the agent knows: it is for people to open.
  img: ({ src, alt }) => {
    const name = alt || "Picture";
    return typeof src === "string" && src
      ? <a href={src} target="_blank" rel="noopener noreferrer">{name}: {src}</a>
      : <span>{name}</span>;
  },
  table: (props: ComponentProps<"table">) => <div className="table-box" tabIndex={0}><table>{props.children}</table></div>,
  pre: (props: ComponentProps<"pre">) => <pre tabIndex={0}>{props.children}</pre>,
};
