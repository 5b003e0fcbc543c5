/**
 * The focus of a tab that is asked to take it.
 */
import { ReactWidget } from '@jupyterlab/ui-components';

/** Take the focus at once, so that the tab is the one in front, and give it on as soon as something is drawn. */
export function takeFocus(widget: ReactWidget, focus: () => unknown): void {
  const { node } = widget;
  // What was in focus here stays so.
  if (node.contains(document.activeElement)) {
    return;
  }
  node.tabIndex = -1;
  node.focus({ preventScroll: true });
  focus();
  if (document.activeElement === node) {
    void widget.renderPromise?.then(() => {
      if (document.activeElement === node) {
        focus();
      }
    });
  }
}
