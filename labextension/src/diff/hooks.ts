/**
 * React hooks for what is on the screen.
 */
import * as React from 'react';

/** Whether an element is at least so wide, in pixels. */
export function useIsWide(element: React.RefObject<HTMLElement>, width: number): boolean {
  const [isWide, setIsWide] = React.useState(false);
  React.useEffect(() => {
    const observer = new ResizeObserver(entries => {
      for (const entry of entries) {
        setIsWide(entry.contentRect.width >= width);
      }
    });
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, [element, width]);
  return isWide;
}

/** What is so near to the visible part is drawn already, in CSS pixels. */
const NEAR = '800px 0px';

/** True from when an element first came near to what can be seen of its scrolling ancestor. */
export function useWasNear(element: React.RefObject<HTMLElement>, atOnce: boolean): boolean {
  const [wasNear, setWasNear] = React.useState(atOnce);
  React.useEffect(() => {
    if (wasNear) {
      return;
    }
    const root = element.current!.closest('[data-ocman-scroll]');
    const observer = new IntersectionObserver(
      entries => entries.some(({ isIntersecting }) => isIntersecting) && setWasNear(true),
      { root, rootMargin: NEAR }
    );
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, [element, wasNear]);
  return wasNear;
}

/** Grows to `target` step by step, with room for other work between the steps. */
export function useGrowing(target: number, step: number): number {
  const [reached, setReached] = React.useState(step);
  React.useEffect(() => {
    if (reached < target) {
      const timer = setTimeout(() => setReached(reached + step), 16);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [reached, target, step]);
  return Math.min(reached, target);
}
