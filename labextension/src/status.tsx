/**
 * The item of the status bar: how many sessions need you, and how many are busy.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import { OcmanModel } from './model';
import { useSignal } from './panel/hooks';
import { Tally, tally } from './tally';

export class StatusItem extends ReactWidget {
  constructor(
    private _model: OcmanModel,
    private _trans: TranslationBundle,
    private _onClick: () => void
  ) {
    super();
    this.addClass('ocman-StatusItem');
    this._model.changed.connect(this._count, this);
  }

  override dispose(): void {
    this._model.changed.disconnect(this._count, this);
    super.dispose();
  }

  /** Whether there is anything to tell. */
  get isActive(): boolean {
    return this._tally.needsYou > 0 || this._tally.busy > 0;
  }

  get activeChanged(): ISignal<this, void> {
    return this._activeChanged;
  }

  protected override render(): JSX.Element {
    return <Counts item={this} trans={this._trans} onClick={this._onClick} />;
  }

  get tally(): Tally {
    return this._tally;
  }

  private _count(): void {
    const next = tally(this._model.state);
    if (next.busy !== this._tally.busy || next.needsYou !== this._tally.needsYou) {
      this._tally = next;
      this._activeChanged.emit();
    }
  }

  private _tally: Tally = { needsYou: 0, busy: 0 };
  private readonly _activeChanged = new Signal<this, void>(this);
}

interface Props {
  item: StatusItem;
  trans: TranslationBundle;
  onClick: () => void;
}

function Counts({ item, trans, onClick }: Props): JSX.Element {
  useSignal(item.activeChanged);
  const { needsYou, busy } = item.tally;
  const parts = [
    needsYou ? trans._n('%1 needs you', '%1 need you', needsYou) : '',
    busy ? trans.__('%1 busy', busy) : ''
  ].filter(part => part);
  return (
    <button
      type="button"
      className={`ocman-StatusItem-button${needsYou ? ' ocman-mod-needs_you' : ''}`}
      title={trans.__('Show the ocman panel')}
      aria-label={trans.__('ocman: %1. Show the panel', parts.join(', '))}
      onClick={onClick}
    >
      {needsYou > 0 && (
        <span className="ocman-StatusItem-mark" aria-hidden="true">
          !
        </span>
      )}
      {parts.join(' · ')}
    </button>
  );
}
