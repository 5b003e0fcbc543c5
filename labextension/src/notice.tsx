/**
 * What stands above a document whose file is not what the document was read from.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
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
      <div className="ocman-DocumentNotice-line">
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
      </div>
    );
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._fit();
  }

  protected override onResize(message: Widget.ResizeMessage): void {
    super.onResize(message);
    this._fit();
  }

  /** The layout goes by `min-height`, and how high the line is depends on its width. */
  private _fit(): void {
    const line = this.node.firstElementChild as HTMLElement | null;
    const height = line ? `${line.offsetHeight}px` : '';
    if (height && height !== '0px' && height !== this.node.style.minHeight) {
      this.node.style.minHeight = height;
      this.parent?.fit();
    }
  }
}
