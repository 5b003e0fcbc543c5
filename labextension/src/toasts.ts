/**
 * What Lab's notifications have room for, how long they stay, and what they offer.  Pure.
 */
import type { Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

/** Lab shows so many characters of a notification. */
export const LONGEST = 140;

/** One with a path or with names in it is read at leisure, but does not cover what is below it for ever. */
export const STAYS = 20_000;

/** A text with a name in it; a name that is too long for Lab loses its end, so that the rest can be read. */
export function fitted(text: (name: string) => string, name: string): string {
  const room = Math.max(LONGEST - text('').length, 20);
  return text(name.length > room ? `${name.slice(0, room - 1)}…` : name);
}

/** The button that copies a path; none where the browser has no clipboard, outside of a secure context. */
export function copyPath(path: string, trans: TranslationBundle): Notification.IAction[] {
  return navigator.clipboard
    ? [
        {
          label: trans.__('Copy path'),
          caption: path,
          callback: () => void navigator.clipboard.writeText(path)
        }
      ]
    : [];
}
