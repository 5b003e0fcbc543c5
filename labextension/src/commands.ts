/**
 * The commands of ocman: their words, when they fit, and what they do.
 *
 * A command is about what its arguments say, and without them about what the user points at.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  closeIcon,
  copyIcon,
  deleteIcon,
  editIcon,
  folderIcon,
  infoIcon,
  refreshIcon,
  runIcon,
  stopIcon,
  terminalIcon
} from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Actions } from './actions';
import {
  ANY_ARGS,
  CommandIDs,
  REPOSITORY_ARGS,
  SESSION_ARGS,
  WORKTREE_ARGS,
  argsOf,
  subjectFrom
} from './command_names';
import { askTitle, confirmDelete, confirmForce, explainWorktree, isOdd, isRemakeable } from './dialogs';
import { ocmanIcon } from './icons';
import { OcmanModel } from './model';
import { OpenForm } from './panel/view';
import { LOCAL } from './records';
import { removeWorktree } from './removal';
import { KnownSession, fromKey, keyOf } from './state';
import { Found, Subject, find, lostWorktree } from './subject';

export interface Doing {
  commands: CommandRegistry;
  model: OcmanModel;
  actions: Actions;
  trans: TranslationBundle;
  /** What the user points at. */
  pointed: () => Subject | null;
  /** Show what is known of a session in the panel. */
  showDetails: (sessionKey: string) => void;
  /** The session is no more: its tab goes. */
  closeSession: (sessionKey: string) => void;
  /** Show the form for a new worktree session. */
  showForm: (form: OpenForm) => void;
  /** Where terminals come from, if there are any. */
  openTerminal: ((path: string) => Promise<void>) | null;
  /** Show a folder in the file browser; absent where it has no such folder. */
  folderOpener: (path: string) => (() => void) | null;
}

/** What one command is, before it is added. */
interface Spec {
  id: string;
  label: string;
  caption: string;
  icon?: CommandRegistry.ICommandOptions['icon'];
  args: object;
  /** Whether it goes with what is pointed at; elsewhere it is not in menus. */
  fits: (found: Found) => boolean;
  /** Whether it can be done now. */
  can?: (found: Found) => boolean;
  run: (found: Found, subject: Subject) => unknown;
}

/** Add the commands of rows and tabs.  Those that open tabs and the panel are added by their plugins. */
export function addCommands(doing: Doing): void {
  const specs = [sessionSpecs, worktreeSpecs, repositorySpecs, placeSpecs].flatMap(some => some(doing));
  specs.forEach(spec => add(doing, spec));
}

function add({ commands, model, pointed }: Doing, spec: Spec): void {
  const subjectOf = (args: ReadonlyPartialJSONObject) => subjectFrom(args) ?? pointed();
  const foundOf = (args: ReadonlyPartialJSONObject) => find(model.state, subjectOf(args));
  commands.addCommand(spec.id, {
    label: spec.label,
    caption: spec.caption,
    icon: spec.icon,
    describedBy: { args: spec.args as any },
    isVisible: args => {
      const found = foundOf(args);
      return found !== null && spec.fits(found);
    },
    isEnabled: args => {
      const found = foundOf(args);
      return found !== null && spec.fits(found) && (spec.can?.(found) ?? true);
    },
    execute: args => {
      const subject = subjectOf(args);
      const found = find(model.state, subject);
      return found && subject && spec.fits(found) ? spec.run(found, subject) : undefined;
    }
  });
}

const hasSession = (found: Found): boolean => found.session !== undefined;

function sessionSpecs({ commands, model, actions, trans, showDetails, closeSession }: Doing): Spec[] {
  const isLive = () => model.connection.phase === 'live';
  const args = SESSION_ARGS;
  const open = (key: string) => commands.execute(CommandIDs.openSession, { ...fromKey(key) });
  return [
    {
      id: CommandIDs.showDetails,
      label: trans.__('Show Details'),
      caption: trans.__('Folder, model and id of the session, at the foot of the panel'),
      icon: infoIcon,
      args,
      fits: hasSession,
      run: ({ session }) => showDetails(keyOf(session!.host, session!.id))
    },
    {
      id: CommandIDs.renameSession,
      label: trans.__('Rename Session…'),
      caption: trans.__('Give the session another title'),
      icon: editIcon,
      args: { type: 'object', properties: { ...args.properties, title: { type: 'string' } } },
      fits: hasSession,
      can: isLive,
      run: async ({ session }) => {
        const title = await askTitle(session!, trans);
        return title && actions.rename(session!, title);
      }
    },
    {
      id: CommandIDs.forkSession,
      label: trans.__('Fork Session'),
      caption: trans.__('A second session that begins with the same messages, in the same worktree'),
      icon: copyIcon,
      args,
      fits: hasSession,
      can: found => isLive() && found.session!.status !== 'directory_missing',
      run: ({ session }) => actions.fork(session!, open)
    },
    {
      id: CommandIDs.abortSession,
      label: trans.__('Abort Session'),
      caption: trans.__('Stop what the session does now'),
      icon: stopIcon,
      args,
      fits: hasSession,
      can: found => isLive() && isAtWork(found.session!),
      run: ({ session }) => actions.abort(session!)
    },
    {
      id: CommandIDs.deleteSession,
      label: trans.__('Delete Session…'),
      caption: trans.__('Delete the session and its messages for ever; files stay'),
      icon: deleteIcon,
      args,
      fits: hasSession,
      can: isLive,
      run: async ({ session }) => {
        if ((await confirmDelete(session!, trans)) && (await actions.delete(session!))) {
          closeSession(keyOf(session!.host, session!.id));
        }
      }
    }
  ];
}

function worktreeSpecs({ commands, model, actions, trans, showForm }: Doing): Spec[] {
  const isLive = () => model.connection.phase === 'live';
  const args = WORKTREE_ARGS;
  const isLinked = ({ worktree }: Found) => worktree !== undefined && !worktree.is_main;
  const remake = ({ worktree, repository }: Found) => {
    const request = { directory: repository!.root, branch: worktree!.branch!, host: repository!.host };
    void model.creations.create(
      request.host === LOCAL ? { directory: request.directory, branch: request.branch } : request,
      repository!.key
    );
  };
  return [
    {
      id: CommandIDs.newSession,
      label: trans.__('New Session in This Worktree'),
      caption: trans.__('Another conversation in the same folder'),
      icon: addIcon,
      args: ANY_ARGS,
      fits: ({ worktree, session }) => worktree !== undefined || session !== undefined,
      can: ({ worktree, session }) =>
        isLive() && (worktree ? worktree.state === 'ok' : session!.status !== 'directory_missing'),
      run: ({ path }, subject) =>
        actions.newSession(subject, path, key => commands.execute(CommandIDs.openSession, { ...fromKey(key) }))
    },
    {
      id: CommandIDs.newHere,
      label: trans.__('New Session or Worktree Session Here'),
      caption: trans.__('In a worktree a session, in a repository a worktree session'),
      icon: addIcon,
      args: ANY_ARGS,
      fits: () => true,
      can: isLive,
      run: ({ worktree, session }, subject) =>
        commands.execute(
          worktree || session ? CommandIDs.newSession : CommandIDs.newWorktreeSessionHere,
          argsOf(subject)
        )
    },
    {
      id: CommandIDs.removeWorktree,
      label: trans.__('Remove Worktree…'),
      caption: trans.__('Says first what would be lost'),
      icon: closeIcon,
      args,
      fits: found => isLinked(found) && found.worktree!.state !== 'not_a_worktree',
      can: isLive,
      run: ({ worktree, repository }) =>
        removeWorktree({ api: model.api, repository: repository!, worktree: worktree!, trans })
    },
    {
      id: CommandIDs.remakeWorktree,
      label: trans.__('Make Again'),
      caption: trans.__('Make the folder of this worktree again, from its branch'),
      icon: refreshIcon,
      args,
      // Also from a session whose folder is gone.
      fits: found => isLinked(found) && isRemakeable(found.worktree!),
      can: isLive,
      run: remake
    },
    {
      id: CommandIDs.explainWorktree,
      label: trans.__('What Is Wrong Here…'),
      caption: trans.__('What is odd about this worktree, and how to put it right'),
      icon: infoIcon,
      args,
      fits: ({ worktree }) => worktree !== undefined && isOdd(worktree),
      run: async found => (await explainWorktree(found.worktree!, found.repository!, trans)) && remake(found)
    },
    {
      id: CommandIDs.newWorktreeSessionHere,
      label: trans.__('New Worktree Session in This Repository…'),
      caption: trans.__('A branch and a folder of its own, with an agent in it'),
      icon: ocmanIcon,
      args: ANY_ARGS,
      fits: ({ repository, session }) => repository !== undefined || !!session?.repo_root,
      run: found =>
        showForm({
          repository: found.repository?.key ?? null,
          directory: found.repository?.root ?? found.session!.repo_root!,
          lost: lostWorktree(found)
        })
    }
  ];
}

function repositorySpecs({ model, actions, trans }: Doing): Spec[] {
  const isLive = () => model.connection.phase === 'live';
  const args = REPOSITORY_ARGS;
  const isRepository = (found: Found) => found.repository !== undefined;
  const instance = (found: Found) => model.state.instances.get(found.repository!.key);
  const isRunning = (found: Found) => {
    const known = instance(found);
    return known !== undefined && (known.state ?? 'running') === 'running';
  };
  /** What the user started is the user's to stop. */
  const isOurs = (found: Found) => isRunning(found) && instance(found)!.owner === 'ocman';
  const unlessBusy = async (found: Found, verb: 'stop' | 'restart', word: string) => {
    const repository = found.repository!;
    const busy = await actions[verb](repository, false);
    if (busy?.code === 'session_busy' && (await confirmForce(busy, model.state, repository, word, trans))) {
      await actions[verb](repository, true);
    }
  };
  return [
    {
      id: CommandIDs.startOpencode,
      label: trans.__('Start OpenCode'),
      caption: trans.__('The next session would start it too'),
      icon: runIcon,
      args,
      fits: isRepository,
      can: found => isLive() && !isRunning(found) && instance(found)?.state !== 'starting',
      run: ({ repository }) => actions.start(repository!)
    },
    {
      id: CommandIDs.stopOpencode,
      label: trans.__('Stop OpenCode'),
      caption: trans.__('Only one that ocman started; sessions and messages are kept'),
      icon: stopIcon,
      args,
      fits: isRepository,
      can: found => isLive() && isOurs(found),
      run: found => unlessBusy(found, 'stop', trans.__('Stop'))
    },
    {
      id: CommandIDs.restartOpencode,
      label: trans.__('Restart OpenCode'),
      caption: trans.__('Only one that ocman started; sessions and messages are kept'),
      icon: refreshIcon,
      args,
      fits: isRepository,
      can: found => isLive() && isOurs(found),
      run: found => unlessBusy(found, 'restart', trans.__('Restart'))
    }
  ];
}

function placeSpecs({ trans, openTerminal, folderOpener, commands }: Doing): Spec[] {
  const specs: Spec[] = [
    {
      id: CommandIDs.copyPath,
      label: trans.__('Copy Path'),
      caption: trans.__('The absolute path of the folder'),
      icon: copyIcon,
      args: ANY_ARGS,
      fits: () => true,
      // Only a secure context has a clipboard.
      can: () => navigator.clipboard !== undefined,
      run: ({ path }) => navigator.clipboard.writeText(path)
    },
    {
      id: CommandIDs.openFolder,
      label: trans.__('Open Folder in File Browser'),
      caption: trans.__('Only for folders in the root directory of the Jupyter server that are not hidden'),
      icon: folderIcon,
      args: ANY_ARGS,
      fits: () => true,
      can: found => found.host === LOCAL && folderOpener(found.path) !== null,
      run: ({ path }) => folderOpener(path)?.()
    }
  ];
  if (openTerminal) {
    specs.push({
      id: CommandIDs.openTerminalHere,
      label: trans.__('Open Terminal Here'),
      caption: trans.__('A terminal whose folder this is'),
      icon: terminalIcon,
      args: ANY_ARGS,
      fits: () => true,
      can: ({ host, worktree, session }) =>
        host === LOCAL &&
        commands.hasCommand('terminal:open') &&
        (worktree ? worktree.state !== 'missing' : session?.status !== 'directory_missing'),
      run: ({ path }) => openTerminal(path)
    });
  }
  return specs;
}

function isAtWork({ status }: KnownSession): boolean {
  return status === 'busy' || status === 'needs_you';
}

