/** Returns a Markdown text in blocks that can be parsed one by one: at empty lines outside of fences and lists. */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let fence = "";
  let wasEmpty = false;
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    // What is indented, or an item, may belong to the list before.
    const mayBegin = !/^(\s|[-*+]\s|\d+[.)]\s)/.test(line);
    if (wasEmpty && !fence && line && mayBegin) {
      blocks.push(block.join("\n"));
      block = [];
    }
    if (fence) {
      if (mark && mark[0] === fence[0] && mark.length >= fence.length) fence = "";
    } else {
      fence = mark;
    }
    block.push(line);
    wasEmpty = line.trim() === "";
  }
  blocks.push(block.join("\n"));
  return blocks;
}
