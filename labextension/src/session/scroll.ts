/**
 * Keeps what is read where it is: at the end while the reader is there, else the entry that stands on top.
 *
 * The browser's own scroll anchoring is not used: it does nothing at the very top, where earlier messages come in.
 */
import { IDisposable } from '@lumino/disposable';

/** So near to the end is at the end, in pixels. */
const SLACK = 32;
/** What the reader does counts for a scroll that follows within so many milliseconds. */
const INTENT = 1000;
const INPUTS = ['wheel', 'touchmove', 'keydown', 'pointerdown'];

export class ScrollKeeper implements IDisposable {
  /**
   * The entries are the children of `list`, which is in `content`, which is all that `scroller` holds.
   *
   * `moved` is called after the reader scrolled, and when the end is reached or left otherwise.
   */
  constructor(
    private _scroller: HTMLElement,
    content: HTMLElement,
    private _list: HTMLElement,
    private _moved: () => void
  ) {
    _scroller.addEventListener('scroll', this._onScroll, { passive: true });
    INPUTS.forEach(type => _scroller.addEventListener(type, this._onInput, { passive: true }));
    // It comes when the page is laid out anyway, and before it is painted.
    this._observer = new ResizeObserver(() => this._settle());
    this._observer.observe(_scroller);
    this._observer.observe(content);
  }

  /** The reader sees the newest. */
  get isAtEnd(): boolean {
    return this._atEnd;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._observer.disconnect();
    this._scroller.removeEventListener('scroll', this._onScroll);
    INPUTS.forEach(type => this._scroller.removeEventListener(type, this._onInput));
  }

  toEnd(): void {
    this._atEnd = true;
    this._settle();
  }

  /** The reader opens or closes something in this entry: it stays where it is. */
  hold(entry: HTMLElement): void {
    this._atEnd = false;
    this._anchor = entry;
    this._offset = this._offsetOf(entry);
  }

  /** Something got another size, came or went. */
  private _settle(): void {
    const { _scroller: scroller } = this;
    if (!scroller.clientHeight) {
      return; // nobody sees it
    }
    const wasAtEnd = this._told;
    if (scroller.scrollTop < this._top - 1) {
      // The reader scrolled up, and the event is still on its way.
      this._record();
    }
    if (this._atEnd) {
      scroller.scrollTop = scroller.scrollHeight;
    } else if (this._anchor?.isConnected) {
      const moved = this._offsetOf(this._anchor) - this._offset;
      if (Math.abs(moved) >= 1) {
        scroller.scrollTop += moved;
      }
    }
    this._record();
    if (this._atEnd !== wasAtEnd) {
      this._told = this._atEnd;
      this._moved();
    }
  }

  private _onScroll = (): void => {
    if (this._scroller.clientHeight) {
      this._record();
      this._told = this._atEnd;
      this._moved();
    }
  };

  private _onInput = (): void => {
    this._input = performance.now();
  };

  private _record(): void {
    const { scrollTop, scrollHeight, clientHeight } = this._scroller;
    // The end may have moved on since the view was scrolled there: it is left by scrolling up only.  Entries that
    // went, and others that came, scroll up too: where the height is another one, the reader must have done something.
    const isReaders = scrollHeight === this._height || performance.now() - this._input < INTENT;
    const isLeft = !this._atEnd || (scrollTop < this._top - 1 && isReaders);
    this._top = scrollTop;
    this._height = scrollHeight;
    this._atEnd = scrollHeight - scrollTop - clientHeight <= SLACK || !isLeft;
    this._anchor = this._onTop();
    this._offset = this._anchor ? this._offsetOf(this._anchor) : 0;
  }

  /** The first entry that is seen; they stand one below the other. */
  private _onTop(): HTMLElement | null {
    const entries = this._list.children;
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { bottom } = entries[middle].getBoundingClientRect();
      if (bottom <= this._scroller.getBoundingClientRect().top) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return (entries[low] as HTMLElement | undefined) ?? null;
  }

  private _offsetOf(entry: HTMLElement): number {
    return entry.getBoundingClientRect().top - this._scroller.getBoundingClientRect().top;
  }

  private readonly _observer: ResizeObserver;
  private _atEnd = true;
  /** What `moved` was called with last. */
  private _told = true;
  private _top = 0;
  private _height = 0;
  private _input = -Infinity;
  private _anchor: HTMLElement | null = null;
  private _offset = 0;
  private _disposed = false;
}
