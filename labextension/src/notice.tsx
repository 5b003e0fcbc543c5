/**
 * What stands above a document whose file is not what the document was read from.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Conflict } from './follower';
import { Button } from './panel/button';

export interface NoticeActions {
  /** `null`: nothing can show what was changed. */
  showDiff: (() => void) | null;
  reload: () => void;
  keep: () => void;
}

export class DocumentNotice extends ReactWidget {
  constructor(
    readonly conflict: Conflict,
    private _actions: NoticeActions,
    private _trans: TranslationBundle
  ) {
    super();
    this.addClass('ocman-DocumentNotice');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _trans.__('This file on disk'));
  }

  protected override render(): JSX.Element {
    const trans = this._trans;
    const { showDiff, reload, keep } = this._actions;
    const isDeleted = this.conflict === 'deleted';
    return (
      <Measured onHeight={this._fit}>
        <span role="alert">
          {isDeleted
            ? trans.__('This file is no longer on disk. Saving would make it again.')
            : trans.__('The agent changed this file on disk. Saving would overwrite that.')}
        </span>
        <span className="ocman-DocumentNotice-buttons">
          {showDiff && <Button onClick={showDiff}>{trans.__('Show diff')}</Button>}
          {!isDeleted && <Button onClick={reload}>{trans.__('Reload from disk')}</Button>}
          <Button onClick={keep}>{trans.__('Keep mine')}</Button>
        </span>
      </Measured>
    );
  }

  /** The layout around goes by `min-height`. */
  private readonly _fit = (height: number): void => {
    this.node.style.minHeight = `${height}px`;
    this.parent?.fit();
  };
}

/** A line that may become several where there is little room; tells how high it is. */
function Measured({
  children,
  onHeight
}: {
  children: React.ReactNode;
  onHeight: (height: number) => void;
}): JSX.Element {
  const line = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    let known = 0;
    const observer = new ResizeObserver(() => {
      const height = line.current?.offsetHeight ?? 0;
      if (height > 0 && height !== known) {
        known = height;
        onHeight(height);
      }
    });
    observer.observe(line.current!);
    return () => observer.disconnect();
  }, [onHeight]);
  return (
    <div ref={line} className="ocman-DocumentNotice-line">
      {children}
    </div>
  );
}
