/**
 * From file to file and from hunk to hunk by keyboard.
 */
import * as React from 'react';

/** What a letter goes to, and in which direction. */
const STEPS: Record<string, { to: string; by: 1 | -1 }> = {
  j: { to: '[data-ocman-file]', by: 1 },
  k: { to: '[data-ocman-file]', by: -1 },
  n: { to: '[data-ocman-hunk]', by: 1 },
  p: { to: '[data-ocman-hunk]', by: -1 }
};

/** So many pixels off the top still count as being there. */
const SLACK = 8;

/** Answer J and K (next and previous file), N and P (hunk); the path of the file that was gone to. */
export function stepByKey(event: React.KeyboardEvent, scroll: HTMLElement): string | null {
  const step = STEPS[event.key.toLowerCase()];
  const target = event.target as HTMLElement;
  if (
    !step ||
    event.altKey ||
    event.ctrlKey ||
    event.metaKey ||
    target.closest('input:not([type="checkbox"]), select, textarea')
  ) {
    return null;
  }
  const stops = [...scroll.querySelectorAll<HTMLElement>(step.to)];
  const stop = stops[nextStop(stops, step.by, scroll)];
  if (!stop) {
    return null;
  }
  event.preventDefault();
  event.stopPropagation();
  show(stop);
  return stop.closest<HTMLElement>('[data-ocman-file]')?.dataset.ocmanFile ?? null;
}

/** Scroll to a file or hunk and put the focus there. */
export function show(stop: HTMLElement): void {
  stop.scrollIntoView({ block: 'start' });
  (stop.querySelector<HTMLElement>('.ocman-File-name') ?? stop).focus({ preventScroll: true });
}

function nextStop(stops: HTMLElement[], by: 1 | -1, scroll: HTMLElement): number {
  const top = scroll.getBoundingClientRect().top;
  const bottom = top + scroll.clientHeight;
  const focused = stops.findIndex(stop => stop.contains(document.activeElement));
  if (focused >= 0) {
    const { top: start, bottom: end } = stops[focused].getBoundingClientRect();
    if (end > top && start < bottom) {
      return focused + by;
    }
  }
  // From what stands at the top of what can be seen.
  const starts = stops.map(stop => stop.getBoundingClientRect().top - top);
  if (by > 0) {
    const below = starts.findIndex(start => start > SLACK);
    return below < 0 ? stops.length : below;
  }
  return starts.filter(start => start < -SLACK).length - 1;
}
