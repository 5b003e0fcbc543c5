/**
 * The side panel as a widget of the application's shell.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { Actions } from '../actions';
import { ocmanIcon } from '../icons';
import { OcmanModel } from '../model';
import { Preferences } from '../preferences';
import { tally } from '../tally';
import { Panel } from './panel';
import { PanelView } from './view';

/** The attribute of the tab that the style sheet draws as a badge, without its "data-". */
const COUNT = 'ocman-count';

export interface PanelOptions {
  model: OcmanModel;
  view: PanelView;
  actions: Actions;
  preferences: Preferences;
  trans: TranslationBundle;
  /** Open the session with this key. */
  onOpen: (sessionKey: string) => void;
}

export class OcmanPanel extends ReactWidget {
  constructor(private _options: PanelOptions) {
    super();
    const { model, trans, view } = _options;
    this._model = model;
    this._trans = trans;
    this.view = view;
    this.id = 'ocman-panel';
    this.addClass('ocman-Panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('ocman sessions'));
    this.title.icon = ocmanIcon;
    this.title.caption = trans.__('ocman');
    this._model.changed.connect(this._count, this);
  }

  override dispose(): void {
    this._model.changed.disconnect(this._count, this);
    this.view.dispose();
    super.dispose();
  }

  protected override render(): JSX.Element {
    return <Panel {...this._options} />;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.view.isVisible = true;
    if (this._model.isLoaded) {
      this._model.lookAgain();
    }
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.view.isVisible = false;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.view.isVisible = this.isVisible;
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    const form = this.node.querySelector('.ocman-Form');
    if (!this.view.form) {
      this.focusTree();
    } else if (form && !form.contains(document.activeElement)) {
      // One that is not drawn yet takes the focus itself.
      form.querySelector<HTMLElement>('select, input')?.focus();
    }
  }

  /** Put the focus on the row that had it last. */
  focusTree(): void {
    const row = this.node.querySelector<HTMLElement>('.ocman-Tree .ocman-Row[tabindex="0"]');
    (row ?? this.node.querySelector<HTMLElement>('button'))?.focus();
  }

  /** The number of sessions that need somebody, on the panel's icon. */
  private _count(): void {
    const { needsYou } = tally(this._model.state);
    if (needsYou !== this._needsYou) {
      this._needsYou = needsYou;
      // The side bar keeps the widget's id there too.
      const { [COUNT]: _, ...rest } = this.title.dataset;
      this.title.dataset = needsYou ? { ...rest, [COUNT]: String(needsYou) } : rest;
      this.title.caption = needsYou
        ? this._trans._n('ocman, %1 session needs you', 'ocman, %1 sessions need you', needsYou)
        : this._trans.__('ocman');
    }
  }

  readonly view: PanelView;
  private readonly _model: OcmanModel;
  private readonly _trans: TranslationBundle;
  private _needsYou = 0;
}
