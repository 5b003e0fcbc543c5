/**
 * The tabs of sessions: opened, found again, and there after a reload.
 */
import { ILabShell, ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { CommandIDs, SESSION_ARGS, subjectFrom } from '../command_names';
import { isRemakeable } from '../dialogs';
import { DiffWidget } from '../diff/widget';
import { ocmanIcon } from '../icons';
import { OcmanModel } from '../model';
import { openFile } from '../opening';
import { openMenu } from '../panel/panel';
import { Preferences } from '../preferences';
import { Drafts, LastWords, SavedDrafts } from '../session/drafts';
import { SessionCallbacks } from '../session/view';
import { SessionWidget } from '../session/widget';
import { fromKey, keyOf } from '../state';
import { Subject, find } from '../subject';
import { selectedCell } from './cells';
import { addSessionKeys } from './session_keys';
import { DOMAIN, IOcmanModel, IPanel, IPreferences, ITabs, PanelParts, Tabs } from './tokens';

export const sessions: JupyterFrontEndPlugin<Tabs> = {
  id: 'ocman-jupyter:sessions',
  description: 'Shows sessions in tabs.',
  autoStart: true,
  provides: ITabs,
  requires: [IOcmanModel, IPreferences, IRenderMimeRegistry],
  optional: [IPanel, ILabShell, ILayoutRestorer, ITranslator, IStateDB, INotebookTracker],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    preferences: Preferences,
    rendermime: IRenderMimeRegistry,
    panel: PanelParts | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    stateDB: IStateDB | null,
    notebooks: INotebookTracker | null
  ): Tabs => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const drafts = new Drafts(saved => void stateDB?.save(DRAFTS, saved as any));
    const lastWords = new LastWords(() => window.sessionStorage, `${DRAFTS} ${PageConfig.getBaseUrl()}`);
    window.addEventListener('pagehide', () => {
      drafts.flush();
      lastWords.leave(drafts);
    });
    void Promise.resolve(stateDB?.fetch(DRAFTS)).then(saved =>
      drafts.restore(lastWords.join((saved ?? {}) as SavedDrafts))
    );

    const tracker = new WidgetTracker<SessionWidget>({ namespace: 'ocman-sessions' });
    const tabs = new TabsInFront(app, tracker);

    const callbacks: SessionCallbacks = {
      openDiff: (host, path) => void commands.execute(CommandIDs.openDiff, { host, path }),
      openFile: (path, host, line) => void openFile(app, { path, host, line }, trans),
      openSession: key => void commands.execute(CommandIDs.openSession, { ...fromKey(key) }),
      menu: (anchor, key) => tabs.openMenu(anchor, { kind: 'session', ...fromKey(key) }),
      recreate: session => {
        const { host, id } = session;
        const worktree = find(model.state, { kind: 'session', host, id })?.worktree;
        // What git has forgotten is looked at before it is made.
        const command =
          worktree && isRemakeable(worktree) ? CommandIDs.remakeWorktree : CommandIDs.newWorktreeSessionHere;
        void commands.execute(command, { host, id });
      }
    };

    const make = (sessionKey: string): SessionWidget => {
      const widget = new SessionWidget({
        model,
        sessionKey,
        trans,
        rendermime,
        drafts,
        callbacks,
        enterSends: () => preferences.chosen.enterSends,
        settleTime: () => preferences.chosen.settleTime,
        showCost: () => preferences.chosen.showCost,
        insertCell: notebooks ? () => selectedCell(notebooks) : undefined
      });
      if (!labShell) {
        // Notebook's main area holds its document alone: one session stands beside it.
        tracker.forEach(other => other.dispose());
      }
      shell.add(widget, labShell ? 'main' : 'right', { type: 'ocman' });
      void tracker.add(widget);
      return widget;
    };

    commands.addCommand(CommandIDs.openSession, {
      label: trans.__('Open Session'),
      caption: trans.__('The conversation with the agent, in a tab'),
      icon: ocmanIcon,
      describedBy: { args: SESSION_ARGS },
      isVisible: args => sessionOf(args, panel, tabs) !== null,
      isEnabled: args => sessionOf(args, panel, tabs) !== null,
      execute: args => {
        const subject = sessionOf(args, panel, tabs);
        if (!subject) {
          return null;
        }
        const key = keyOf(subject.host, subject.id);
        const widget = tracker.find(one => one.sessionKey === key) ?? make(key);
        if (args.activate !== false) {
          shell.activateById(widget.id);
        }
        return widget;
      }
    });

    addSessionKeys(
      commands,
      trans,
      () => tracker.find(({ node }) => node.contains(document.activeElement)) ?? null
    );

    void restorer?.restore(tracker, {
      command: CommandIDs.openSession,
      args: ({ sessionKey }) => ({ ...fromKey(sessionKey), activate: false }),
      name: ({ sessionKey }) => sessionKey.replace('\n', '/')
    });

    // A new worktree session is looked at as soon as it is there.
    model.creations.made.connect((_, { host, session_id: id }) => {
      if (id) {
        void commands.execute(CommandIDs.openSession, { host, id });
      }
    });

    model.event.connect((_, { type, host, data }) => {
      if (type === 'session.removed') {
        drafts.forget(keyOf(host, data.id));
      }
    });
    preferences.changed.connect(() => tracker.forEach(widget => widget.update()));

    const follow = () => {
      if (panel) {
        const current = tabs.current;
        panel.view.current = current?.kind === 'session' ? keyOf(current.host, current.id) : null;
      }
    };
    shell.currentChanged?.connect(follow);
    tracker.currentChanged.connect(follow);
    return tabs;
  }
};

const DRAFTS = 'ocman-jupyter:drafts';

function sessionOf(
  args: Parameters<typeof subjectFrom>[0],
  panel: PanelParts | null,
  tabs: Tabs
): Extract<Subject, { kind: 'session' }> | null {
  const subject = subjectFrom(args) ?? pointed(panel, tabs);
  return subject?.kind === 'session' ? subject : null;
}

/** What the user points at: an open menu's row, the row with the keyboard, the tab in front, the row that had it. */
export function pointed(panel: PanelParts | null, tabs: Tabs | null): Subject | null {
  const row = panel?.view.target ?? null;
  return (
    panel?.view.menuTarget ??
    (panel?.widget.node.contains(document.activeElement) ? row : null) ??
    tabs?.current ??
    (panel?.widget.isVisible ? row : null)
  );
}

class TabsInFront implements Tabs {
  constructor(
    private _app: JupyterFrontEnd,
    private _tracker: WidgetTracker<SessionWidget>
  ) {}

  get current(): Subject | null {
    // Notebook's shell knows no tab but its document's: there the focus tells.
    const focused = this._tracker.find(({ node }) => node.contains(document.activeElement));
    return this._ofMenu ?? subjectOf(focused ?? this._app.shell.currentWidget);
  }

  /** Show the menu of what a tab shows; the focus comes back to the button. */
  openMenu(anchor: HTMLElement, subject: Subject): void {
    const { menu } = this._app.contextMenu;
    const closed = () => {
      menu.aboutToClose.disconnect(closed);
      anchor.focus();
      // The command runs after its menu has closed.
      setTimeout(() => {
        if (this._ofMenu === subject) {
          this._ofMenu = null;
        }
      });
    };
    this._ofMenu = subject;
    menu.aboutToClose.connect(closed);
    openMenu(anchor);
    if (!menu.isAttached) {
      closed();
    }
  }

  isSeen(sessionKey: string): boolean {
    return this._tracker.filter(one => one.sessionKey === sessionKey).some(one => one.isVisible);
  }

  close(sessionKey: string): void {
    this._tracker.find(one => one.sessionKey === sessionKey)?.dispose();
  }

  /** What the open menu is of. */
  private _ofMenu: Subject | null = null;
}

function subjectOf(widget: Widget | null): Subject | null {
  if (widget instanceof SessionWidget) {
    return { kind: 'session', ...fromKey(widget.sessionKey) };
  }
  if (widget instanceof DiffWidget) {
    const { host, path } = widget.diff;
    return { kind: 'worktree', host, path };
  }
  return null;
}
