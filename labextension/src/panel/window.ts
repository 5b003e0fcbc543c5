/**
 * Which rows of a long list are drawn: those in sight, those that must stay, and gaps for all others.  Pure.
 */

export type Piece =
  | { readonly kind: 'row'; readonly index: number }
  | { readonly kind: 'gap'; readonly height: number };

export interface Sight {
  readonly count: number;
  readonly rowHeight: number;
  /** The rows of another height, by index; they are always drawn. */
  readonly tall: ReadonlyMap<number, number>;
  /** What is in sight, in pixels from the top of the list. */
  readonly top: number;
  readonly bottom: number;
  /** Rows that are drawn wherever they are: the one with the focus must not lose it. */
  readonly pinned: ReadonlySet<number>;
}

export function pieces(sight: Sight): Piece[] {
  const { count, rowHeight, tall, top, bottom, pinned } = sight;
  const found: Piece[] = [];
  let gap = 0;
  let y = 0;
  for (let index = 0; index < count; index++) {
    const height = tall.get(index) ?? rowHeight;
    const isInSight = y + height > top && y < bottom;
    if (isInSight || tall.has(index) || pinned.has(index)) {
      if (gap) {
        found.push({ kind: 'gap', height: gap });
        gap = 0;
      }
      found.push({ kind: 'row', index });
    } else {
      gap += height;
    }
    y += height;
  }
  if (gap) {
    found.push({ kind: 'gap', height: gap });
  }
  return found;
}

/** As far beyond what is seen rows are drawn, so that a step or a short scroll finds them there. */
const BEYOND = 480;

/** What is seen is told in steps of this many pixels: a scroll by less changes nothing. */
const STEP = 240;

/** The part of the list for a scrolled box, in coarse steps. */
export function sightOf(scrollTop: number, boxHeight: number): { top: number; bottom: number } {
  return {
    top: Math.floor(scrollTop / STEP) * STEP - BEYOND,
    bottom: Math.ceil((scrollTop + boxHeight) / STEP) * STEP + BEYOND
  };
}
