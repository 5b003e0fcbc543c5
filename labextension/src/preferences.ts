/**
 * What the user chose in Lab's settings, with what holds until they are read.
 */
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';

export interface Chosen {
  /** The side of the window that the panel stands at. */
  readonly side: 'left' | 'right';
  readonly notifyNeedsYou: boolean;
  readonly notifyFinished: boolean;
  /** Enter sends a message, Shift+Enter begins a new line; else Ctrl+Enter sends. */
  readonly enterSends: boolean;
  /** How long a new ask takes no "allow", in milliseconds. */
  readonly settleTime: number;
  readonly showCost: boolean;
}

export const DEFAULTS: Chosen = {
  side: 'left',
  notifyNeedsYou: true,
  notifyFinished: true,
  enterSends: true,
  settleTime: 350,
  showCost: true
};

/** The shortest time that still keeps a keystroke in flight from allowing anything, in milliseconds. */
const SHORTEST = 350;

export class Preferences {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get chosen(): Chosen {
    return this._chosen;
  }

  /** Follow these settings from now on. */
  follow(settings: ISettingRegistry.ISettings): void {
    const read = () => {
      this._chosen = chosenFrom(settings.composite as Record<string, unknown>);
      this._changed.emit();
    };
    settings.changed.connect(read);
    read();
  }

  private _chosen = DEFAULTS;
  private readonly _changed = new Signal<this, void>(this);
}

/** The settings as they are meant, whatever is in the file. */
export function chosenFrom(settings: Record<string, unknown>): Chosen {
  const found: Record<string, unknown> = { ...DEFAULTS };
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === typeof found[name]) {
      found[name] = value;
    }
  }
  const chosen = found as unknown as Chosen;
  const settleTime = Math.max(SHORTEST, Math.min(chosen.settleTime, 10_000)) || SHORTEST;
  return { ...chosen, side: chosen.side === 'right' ? 'right' : 'left', settleTime };
}
