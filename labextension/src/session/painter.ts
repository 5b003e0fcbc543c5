/**
 * Draws markdown piece by piece, so that the page stays responsive however much there is to draw.
 */
import { IRenderMime, IRenderMimeRegistry, renderMarkdown } from '@jupyterlab/rendermime';
import { hasFormula } from './formula';
import { untrusted, withoutDiagrams } from './untrusted';

interface Job {
  source: string;
  /** It will change again: formulas wait. */
  live: boolean;
  due: number;
}

/** In milliseconds: as long is drawn before others get their turn. */
const SLICE = 8;
/** A text that grows is drawn again after this, and after a multiple of what drawing it took. */
const PAUSE = 100;
const PAUSE_FACTOR = 6;
/** A text whose words are being selected waits, so that the selection stays. */
const SELECTED = 500;

export class Painter {
  constructor(private _rendermime: IRenderMimeRegistry) {
    this._sanitizer = untrusted(_rendermime.sanitizer);
  }

  /** Draw `source` into `host` soon, in place of what was asked for it before. */
  paint(host: HTMLElement, source: string, live: boolean): void {
    const now = performance.now();
    const due = live ? Math.max(now, this._rested.get(host) ?? 0) : now;
    // The newest is asked for last and drawn first: that is what the reader sees.
    this._jobs.delete(host);
    this._jobs.set(host, { source, live, due });
    this._wake(due - now);
  }

  /** What was in `host` is no longer wanted. */
  forget(host: HTMLElement): void {
    this._jobs.delete(host);
  }

  private _wake(delay: number): void {
    const at = performance.now() + Math.max(0, delay);
    if (this._running || (this._timer !== undefined && this._timerAt <= at)) {
      return;
    }
    clearTimeout(this._timer);
    this._timerAt = at;
    this._timer = setTimeout(() => void this._run(), Math.max(0, delay));
  }

  private async _run(): Promise<void> {
    this._timer = undefined;
    this._running = true;
    const begun = performance.now();
    for (let next = this._next(); next; next = this._next()) {
      const [host, job] = next;
      this._jobs.delete(host);
      const before = performance.now();
      // What loads a language to highlight must not hold up the others.
      await Promise.race([this._after(host, job), new Promise(resolve => setTimeout(resolve, 50))]);
      const after = performance.now();
      this._rested.set(host, after + Math.max(PAUSE, PAUSE_FACTOR * (after - before)));
      if (after - begun > SLICE) {
        break;
      }
    }
    this._running = false;
    if (this._jobs.size) {
      const soonest = Math.min(...[...this._jobs.values()].map(({ due }) => due));
      this._wake(soonest - performance.now());
    }
  }

  /** The last one asked for that is due. */
  private _next(): [HTMLElement, Job] | undefined {
    const now = performance.now();
    let found: [HTMLElement, Job] | undefined;
    for (const entry of this._jobs) {
      if (entry[1].due <= now) {
        found = entry;
      }
    }
    if (found && found[1].live && isSelected(found[0])) {
      found[1].due = now + SELECTED;
      return undefined;
    }
    return found;
  }

  /** Draw when what is drawn there now is done: the newest is what stays. */
  private _after(host: HTMLElement, job: Job): Promise<void> {
    const drawn = (this._drawings.get(host) ?? Promise.resolve()).then(() => this._draw(host, job));
    this._drawings.set(host, drawn);
    return drawn;
  }

  private async _draw(host: HTMLElement, { source, live }: Job): Promise<void> {
    try {
      await renderMarkdown({
        host,
        source: withoutDiagrams(source),
        trusted: false,
        sanitizer: this._sanitizer,
        resolver: null,
        linkHandler: null,
        shouldTypeset: !live && hasFormula(source),
        latexTypesetter: this._rendermime.latexTypesetter,
        markdownParser: this._rendermime.markdownParser
      });
      host.classList.add('ocman-mod-drawn');
    } catch (reason) {
      // Its plain text stands there.
      console.warn('ocman: a text could not be drawn', reason);
    }
  }

  private readonly _sanitizer: IRenderMime.ISanitizer;
  private readonly _jobs = new Map<HTMLElement, Job>();
  private readonly _drawings = new WeakMap<HTMLElement, Promise<void>>();
  /** When a text may be drawn again. */
  private readonly _rested = new WeakMap<HTMLElement, number>();
  private _running = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _timerAt = 0;
}

function isSelected(host: HTMLElement): boolean {
  // `isCollapsed` and `containsNode` would lay the page out.
  const { anchorNode, anchorOffset, focusNode, focusOffset } = document.getSelection() ?? {};
  const isEmpty = anchorNode === focusNode && anchorOffset === focusOffset;
  return !isEmpty && (host.contains(anchorNode ?? null) || host.contains(focusNode ?? null));
}
