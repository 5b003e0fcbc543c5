/**
 * The tabs of diffs, and open documents that agents change.
 */
import { ILabShell, ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, NO_ARGS, WORKTREE_ARGS, subjectFrom } from '../command_names';
import { Stop, step } from '../diff/keys';
import { DiffWidget } from '../diff/widget';
import { followChanges } from '../documents';
import { branchIcon } from '../icons';
import { OcmanModel } from '../model';
import { openFile } from '../opening';
import { Found, find } from '../subject';
import { pointed } from './sessions';
import { DOMAIN, IOcmanModel, IPanel, ITabs, PanelParts, Tabs } from './tokens';

export const diffs: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:diffs',
  description: 'Shows what a worktree has changed, in tabs.',
  autoStart: true,
  requires: [IOcmanModel],
  optional: [IPanel, ITabs, ILabShell, ILayoutRestorer, IRenderMimeRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    panel: PanelParts | null,
    tabs: Tabs | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    rendermime: IRenderMimeRegistry | null,
    translator: ITranslator | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const tracker = new WidgetTracker<DiffWidget>({ namespace: 'ocman-diffs' });

    const make = (host: string, path: string, against: string | undefined): DiffWidget => {
      const widget = new DiffWidget({
        model,
        host,
        path,
        against,
        trans,
        rendermime: rendermime ?? undefined,
        open: (file, line) => void openFile(app, { path: file, host, line }, trans)
      });
      if (!labShell) {
        tracker.forEach(other => other.dispose());
      }
      shell.add(widget, labShell ? 'main' : 'right', { type: 'ocman' });
      void tracker.add(widget);
      widget.diff.changed.connect(() => void tracker.save(widget));
      return widget;
    };

    type Args = Parameters<typeof subjectFrom>[0];
    /** A worktree that is named is shown whether it is known yet or not: a restored tab comes before the list. */
    const placeOf = (args: Args): { host: string; path: string } | null => {
      const subject = subjectFrom(args);
      if (subject?.kind === 'worktree') {
        return subject;
      }
      const found: Found | null = find(model.state, subject ?? pointed(panel, tabs));
      const isThere = found?.worktree ? found.worktree.state === 'ok' : found?.session !== undefined;
      return found && isThere ? { host: found.host, path: found.path } : null;
    };
    commands.addCommand(CommandIDs.openDiff, {
      label: trans.__('Show Diff'),
      caption: trans.__('What the worktree has changed against its base'),
      icon: branchIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            ...WORKTREE_ARGS.properties,
            against: {
              type: 'string',
              description: '"base", a git reference, or the path of another worktree.'
            }
          }
        }
      },
      isVisible: args => placeOf(args) !== null,
      isEnabled: args => placeOf(args) !== null,
      execute: args => {
        const place = placeOf(args);
        if (!place) {
          return null;
        }
        const { host, path } = place;
        const against = typeof args.against === 'string' ? args.against : undefined;
        const widget =
          tracker.find(({ diff }) => diff.host === host && diff.path === path) ?? make(host, path, against);
        if (args.activate !== false) {
          shell.activateById(widget.id);
        }
        return widget;
      }
    });

    const steps: [string, string, Stop, 1 | -1][] = [
      [CommandIDs.nextFile, trans.__('Next File'), 'file', 1],
      [CommandIDs.previousFile, trans.__('Previous File'), 'file', -1],
      [CommandIDs.nextChange, trans.__('Next Change'), 'hunk', 1],
      [CommandIDs.previousChange, trans.__('Previous Change'), 'hunk', -1]
    ];
    const focused = () => document.activeElement?.closest('.ocman-Diff') ?? null;
    for (const [id, label, to, by] of steps) {
      commands.addCommand(id, {
        label,
        caption: trans.__('In the diff of a worktree'),
        describedBy: { args: NO_ARGS },
        isEnabled: () => focused() !== null,
        execute: () => {
          const root = focused();
          if (root) {
            step(root, to, by);
          }
        }
      });
    }

    void restorer?.restore(tracker, {
      command: CommandIDs.openDiff,
      args: ({ diff: { host, path, against } }) => ({ host, path, against, activate: false }),
      name: ({ diff: { host, path } }) => `${host}/${path}`
    });
  }
};

export const documents: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:documents',
  description: 'Reloads open documents that agents changed, and warns where something typed would be lost.',
  autoStart: true,
  requires: [IOcmanModel],
  optional: [IDocumentManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    docManager: IDocumentManager | null,
    translator: ITranslator | null
  ): void => {
    if (docManager) {
      followChanges(app, docManager, model, (translator ?? nullTranslator).load(DOMAIN));
    }
  }
};
