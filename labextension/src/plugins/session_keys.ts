/**
 * What keys do in the tab of a session; which keys stands in the settings.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { CommandIDs, NO_ARGS } from '../command_names';
import { SessionWidget } from '../session/widget';
import { keyIsHeld } from './held';

/** `focused` gives the tab that has the keyboard. */
export function addSessionKeys(
  commands: CommandRegistry,
  trans: TranslationBundle,
  focused: () => SessionWidget | null
): void {
  const add = (id: string, label: string, caption: string, run: (widget: SessionWidget) => unknown) =>
    commands.addCommand(id, {
      label,
      caption,
      describedBy: { args: NO_ARGS },
      isEnabled: () => focused() !== null,
      execute: () => {
        const widget = focused();
        if (widget) {
          run(widget);
        }
      }
    });
  add(CommandIDs.nextMessage, trans.__('Next Message'), trans.__('In the conversation'), widget =>
    widget.stepMessage(1)
  );
  add(CommandIDs.previousMessage, trans.__('Previous Message'), trans.__('In the conversation'), widget =>
    widget.stepMessage(-1)
  );
  add(
    CommandIDs.toggleMessage,
    trans.__('Open or Close the Tool Call'),
    trans.__('Of the message with the focus'),
    widget => widget.toggleMessage()
  );
  add(
    CommandIDs.focusMessages,
    trans.__('Go to the Messages'),
    trans.__('From where a message is written, or an ask is answered'),
    widget => widget.focusMessages()
  );
  add(
    CommandIDs.focusText,
    trans.__('Go to the Text'),
    trans.__('Where a message is written'),
    widget => widget.focusText()
  );
  add(
    CommandIDs.sendMessage,
    trans.__('Send Message'),
    trans.__('What is written in the session'),
    widget => keyIsHeld() || widget.send()
  );
}
