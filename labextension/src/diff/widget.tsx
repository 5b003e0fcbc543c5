/**
 * The diff tab as a widget of the main area.
 */
import * as React from 'react';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { takeFocus } from '../focus';
import { branchIcon } from '../icons';
import { OcmanModel } from '../model';
import { baseName } from '../state';
import { DiffModel } from './state';
import { DiffView } from './view';

export interface DiffWidgetOptions {
  model: OcmanModel;
  /** Of the worktree. */
  path: string;
  host: string;
  /** `base` unless it is said: a git reference, or the path of another worktree. */
  against?: string;
  trans: TranslationBundle;
  rendermime?: IRenderMimeRegistry;
  /** Open a file of the worktree, named by its absolute path; lines count from one. */
  open: (path: string, line?: number) => void;
}

let count = 0;

export class DiffWidget extends ReactWidget {
  constructor(private _options: DiffWidgetOptions) {
    super();
    const { model, path, host, against, trans } = _options;
    this.diff = new DiffModel(model, { path, host, against });
    this.id = `ocman-diff-${++count}`;
    this.addClass('ocman-Diff');
    this.title.closable = true;
    this.title.icon = branchIcon;
    this.title.caption = path;
    this.title.label = trans.__('Diff %1', this._name());
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.label);
  }

  /** What it shows; `against` changes with what the reader chooses. */
  readonly diff: DiffModel;

  override dispose(): void {
    this.diff.dispose();
    super.dispose();
  }

  protected override render(): JSX.Element {
    return <DiffView diff={this.diff} open={this._open} trans={this._options.trans} />;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.diff.isVisible = this.isVisible;
  }

  /** A closed tab is gone: what is shown again begins anew. */
  protected override onCloseRequest(message: Message): void {
    super.onCloseRequest(message);
    this.dispose();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.diff.isVisible = true;
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.diff.isVisible = false;
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    takeFocus(this, () =>
      this.node.querySelector<HTMLElement>('.ocman-FileList [tabindex="0"], button')?.focus()
    );
  }

  private _name(): string {
    return this.diff.worktree?.name || baseName(this._options.path);
  }

  private readonly _open = (path: string, line: number | null): void =>
    this._options.open(path, line ?? undefined);
}
