/** The values that an editor has told its owner. The owner hands them back one by one, some after the editor went on. */
export class Echoes {
  private told: string[] = [];

  tell(value: string): void {
    this.told.push(value);
  }

  /** Returns whether a value that is handed in is one that was told, and forgets those until there; else all. */
  isOwn(value: string): boolean {
    const at = this.told.lastIndexOf(value);
    this.told = at < 0 ? [] : this.told.slice(at + 1);
    return at >= 0;
  }
}
