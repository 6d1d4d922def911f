// Outside services of the page, as small as they can be.

export const smtp = {
  async send(_mail: object, { key }: { signal: AbortSignal; key: string }) {
    return { id: `mail ${key}`, busy: false, refused: false }
  },
}

export const search = {
  async rebuild(_name: string, _options: { signal: AbortSignal }): Promise<void> {},
  async saveProgress(_name: string): Promise<void> {},
}

export const trace = {
  current: () => 'a trace',
  run: <T>(_id: string, work: () => T): T => work(),
}
