/**
 * From file to file and from hunk to hunk by keyboard.
 */

/** What is gone to. */
export type Stop = 'file' | 'hunk';

/** So many pixels off the top still count as being there. */
const SLACK = 8;

/** Go to the next file or hunk of the diff tab `root`, or to the one before. */
export function step(root: Element, to: Stop, by: 1 | -1): void {
  const scroll = root.querySelector<HTMLElement>('[data-ocman-scroll]');
  const stops = [...(scroll?.querySelectorAll<HTMLElement>(`[data-ocman-${to}]`) ?? [])];
  const stop = scroll && stops[nextStop(stops, by, scroll)];
  if (stop) {
    show(stop);
  }
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
