/**
 * Documents that are open in the application are kept in step with what agents do to their files.
 */
import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { DocumentRegistry, DocumentWidget } from '@jupyterlab/docregistry';
import { Contents } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { Conflict, Follower, OpenDocument, Version } from './follower';
import { OcmanModel } from './model';
import { DocumentNotice } from './notice';
import { absolutePath, serverRoot } from './places';
import { readingPlace } from './reading_place';
import { HostEvent, LOCAL } from './records';
import { State, baseName, fromKey, isWithin } from './state';
import { STAYS, fitted } from './toasts';
import { Unsaved } from './unsaved';

/** The command that shows what a worktree has changed. */
const OPEN_DIFF = 'ocman:open-diff';

/** How often at most it is looked which sessions work beside open documents, in milliseconds. */
const LOOKS = 1_000;

/** A save that the user cancels never says that it is over, in milliseconds. */
const SAVE_TAKES = 5_000;

/**
 * Reload what an agent changed, as long as nothing typed would be lost; else say so above the document.
 *
 * Lab itself asks before a save overwrites a file whose hash (or time, where there is no hash) is not the one that
 * the document was read from; this only says it earlier, and never saves.
 */
export function followChanges(
  app: JupyterFrontEnd,
  docManager: IDocumentManager,
  model: OcmanModel,
  trans: TranslationBundle
): IDisposable {
  const root = serverRoot();
  if (root === null) {
    return new DisposableDelegate(() => undefined);
  }
  const documents = new Documents(app, docManager, root);
  const notices = new Notices(app, model, trans);
  const follower = new Follower<LabDocument>({
    documents: () => documents.all(),
    tell: (document, conflict) =>
      notices.tell(document, conflict, {
        reload: () => void follower.replace(document).catch(console.warn),
        keep: () => void follower.keep(document).catch(console.warn)
      }),
    lost: (worktree, lost) => notices.lost(worktree, lost)
  });
  documents.saved = document => void follower.check(document);
  const watches = new Watches(model, documents);
  const onEvent = (_: OcmanModel, event: HostEvent) => follower.handle(event, model.state);
  let { phase } = model.connection;
  const onChanged = () => {
    if (model.connection.phase !== phase) {
      phase = model.connection.phase;
      if (phase === 'live') {
        follower.checkAll();
      }
    }
  };
  // Documents are followed from the beginning, so that it is known what was changed in them.
  const meet = () => void documents.all();
  docManager.activateRequested.connect(meet);
  void app.restored.then(meet);
  model.event.connect(onEvent);
  model.changed.connect(onChanged);
  return new DisposableDelegate(() => {
    docManager.activateRequested.disconnect(meet);
    model.event.disconnect(onEvent);
    model.changed.disconnect(onChanged);
    watches.dispose();
    follower.dispose();
  });
}

/** A document of Lab or Notebook whose file is in the server's root directory. */
class LabDocument implements OpenDocument {
  constructor(
    readonly context: DocumentRegistry.Context,
    private _contents: Contents.IManager,
    private _root: string
  ) {
    this._unsaved = new Unsaved(context);
    context.saveState.connect((_, state) => {
      clearTimeout(this._saving);
      this.isSaving = state === 'started';
      if (this.isSaving) {
        this._saving = setTimeout(() => this._afterSave(), SAVE_TAKES);
      } else {
        this._afterSave();
      }
    });
  }

  /** The views that show it. */
  widgets: DocumentWidget[] = [];

  isSaving = false;

  saved: () => void = () => undefined;

  get path(): string {
    return absolutePath(this._contents.localPath(this.context.path), this._root);
  }

  get isDirty(): boolean {
    return this._unsaved.isThere;
  }

  get known(): Version | null {
    const { context } = this;
    const model = context.isReady && !context.isDisposed ? context.contentsModel : null;
    return model && { hash: model.hash, modified: model.last_modified };
  }

  async onDisk(): Promise<Version | null> {
    try {
      const found = await this._contents.get(this.context.path, { content: false, hash: true });
      return { hash: found.hash, modified: found.last_modified, size: found.size };
    } catch (reason) {
      if ((reason as { response?: Response }).response?.status === 404) {
        return null;
      }
      throw reason;
    }
  }

  async reload(disk: Version): Promise<void> {
    const { context } = this;
    const places = this.widgets.filter(({ isDisposed }) => !isDisposed).map(readingPlace);
    await this._unsaved.replace(async () => {
      await context.revert();
      // Lab leaves the old text where the file has become empty.
      if (disk.size === 0 && !context.isDisposed && context.contentsModel?.format === 'text') {
        context.model.fromString('');
      }
    });
    places.forEach(putBack => putBack());
  }

  private _afterSave(): void {
    this.isSaving = false;
    this.saved();
  }

  private readonly _unsaved: Unsaved;
  private _saving: ReturnType<typeof setTimeout> | undefined;
}

class Documents {
  constructor(
    private _app: JupyterFrontEnd,
    private _docManager: IDocumentManager,
    private _root: string
  ) {}

  /** Called when a document was saved, or could not be. */
  saved: (document: LabDocument) => void = () => undefined;

  all(): LabDocument[] {
    const { contents } = this._app.serviceManager;
    const found = new Set<LabDocument>();
    for (const widget of this._app.shell.widgets('main')) {
      const context = this._docManager.contextForWidget(widget);
      // Other drives' files are elsewhere; what several people edit together is kept by the server.
      if (!context || contents.driveName(context.path) || context.model.collaborative) {
        continue;
      }
      let document = this._known.get(context);
      if (!document) {
        const created = new LabDocument(context, contents, this._root);
        created.saved = () => this.saved(created);
        this._known.set(context, created);
        document = created;
      }
      if (!found.has(document)) {
        document.widgets = [];
        found.add(document);
      }
      if (widget instanceof DocumentWidget) {
        document.widgets.push(widget);
      }
    }
    return [...found];
  }

  private readonly _known = new WeakMap<DocumentRegistry.Context, LabDocument>();
}

class Notices {
  constructor(
    private _app: JupyterFrontEnd,
    private _model: OcmanModel,
    private _trans: TranslationBundle
  ) {}

  tell(
    document: LabDocument,
    conflict: Conflict | null,
    actions: { reload: () => void; keep: () => void }
  ): void {
    for (const widget of document.widgets) {
      if (widget.isDisposed) {
        continue;
      }
      const there = widget.contentHeader.widgets.find(
        (child): child is DocumentNotice => child instanceof DocumentNotice
      );
      if (there?.conflict === conflict) {
        continue;
      }
      there?.dispose();
      if (conflict) {
        const showDiff = this._showDiff(document.path);
        widget.contentHeader.addWidget(new DocumentNotice(conflict, { ...actions, showDiff }, this._trans));
      }
    }
  }

  lost(worktree: string, documents: LabDocument[]): void {
    const names = documents.map(({ path }) => baseName(path)).join(', ');
    const text = (some: string) =>
      this._trans.__('The worktree %1 is gone. Still open: %2', baseName(worktree), some);
    // Each document says so itself as well.
    Notification.warning(fitted(text, names), { autoClose: STAYS });
  }

  private _showDiff(path: string): (() => void) | null {
    const worktree = worktreeAround(this._model.state, path);
    const { commands } = this._app;
    return worktree !== null && commands.hasCommand(OPEN_DIFF)
      ? () => void commands.execute(OPEN_DIFF, { host: LOCAL, path: worktree })
      : null;
  }
}

/** The innermost worktree that holds a file. */
function worktreeAround(state: State, path: string): string | null {
  let found: string | null = null;
  for (const { host, worktrees } of state.repositories.values()) {
    for (const folder of host === LOCAL ? worktrees.keys() : []) {
      if (isWithin(path, folder) && folder.length > (found?.length ?? 0)) {
        found = folder;
      }
    }
  }
  return found;
}

/** Has the messages of sessions come that work beside open documents, so that each edit is seen at once. */
class Watches implements IDisposable {
  constructor(
    private _model: OcmanModel,
    private _documents: Documents
  ) {
    _model.changed.connect(this._later, this);
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._timer);
    this._model.changed.disconnect(this._later, this);
    this._watched.forEach(watch => watch.dispose());
    this._watched.clear();
  }

  private _later(): void {
    if (this._timer === undefined) {
      this._timer = setTimeout(() => {
        this._timer = undefined;
        this._look();
      }, LOOKS);
    }
  }

  private _look(): void {
    const paths = this._documents.all().map(({ path }) => path);
    const wanted = new Set<string>();
    for (const [key, session] of paths.length ? this._model.state.sessions : []) {
      const folder = session.place ?? session.directory;
      const works = session.status === 'busy' || session.status === 'needs_you';
      if (works && fromKey(key).host === LOCAL && paths.some(path => isWithin(path, folder))) {
        wanted.add(key);
      }
    }
    for (const [key, watch] of this._watched) {
      if (!wanted.has(key)) {
        watch.dispose();
        this._watched.delete(key);
      }
    }
    for (const key of wanted) {
      if (!this._watched.has(key)) {
        this._watched.set(key, this._model.watch(key));
      }
    }
  }

  private _disposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private readonly _watched = new Map<string, IDisposable>();
}
