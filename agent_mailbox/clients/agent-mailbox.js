// Mail between coding-agent sessions, in OpenCode. `agent-mailbox install opencode` writes this file, and
// `agent-mailbox uninstall opencode` removes it. It only translates: each event becomes a call of the hook, with the
// session on standard input, and the answer goes to the model. A hook never breaks a session: without an answer, or
// without the program, all goes on.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"

// The installation fills these in: the hook, the variables by which other clients name their sessions, and the person's
// rules for plain mail commands.
const HOOK = ""
const NAMES = []
const FREE = []
const REDIRECTED = ""

const LINE = "agent-mailbox: new mail"
const WAKE = 2
const BROKEN_OFF = "agent-mailbox: the turn was broken off before this was decided"
// The names by which rules and guards know the client's tools. Any other tool is a server's, or of the person's own.
const TOOLS = {
  bash: "Bash", read: "Read", write: "Write", edit: "Edit", apply_patch: "Edit", glob: "Glob", grep: "Grep",
  list: "LS", webfetch: "WebFetch", websearch: "WebSearch", task: "Agent", skill: "Skill", todowrite: "TodoWrite",
  todoread: "TodoRead", question: "AskUserQuestion",
}
const WRITES = ["Write", "Edit"]
// A client within another one inherits these, which name the other's session.
const OTHERS = /^(CLAUDE|CODEX_|GEMINI_)/

// `opencode run` ends with its turn: mail for it waits until the session is resumed.
const words = process.argv.slice(2)
const ends = words.includes("run") && !words.includes("-i") && !words.includes("--interactive")

const paths = (tool, args) => {
  if (tool !== "apply_patch") return typeof args.filePath === "string" ? [args.filePath] : []
  const lines = String(args.patchText).split("\n")
  return lines.map((line) => /^\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)/s.exec(line)?.[1].trim()).filter(Boolean)
}

// What rules and guards judge: a call that writes several files is one of each.
const inputs = (tool, args, directory) => {
  const files = paths(tool, args)
  return files.length ? files.map((path) => ({ file_path: resolve(directory, path), ...args })) : [args]
}

// Codex's AGENTS.md, which OpenCode reads as well, may hold the section already.
const SECTION = fileURLToPath(new URL("../agent-mailbox.md", import.meta.url))
const isTold = (directory) => {
  try {
    return readFileSync(resolve(directory, "AGENTS.md"), "utf8").includes("<!-- agent-mailbox:begin -->")
  } catch {
    return false
  }
}

// Where the person's rules ask about every command, plain mail needs no asking: our rules come right behind that one, so
// that all others of the person's overrule them. A redirection writes a file, and is asked about.
const permitted = (permission) => {
  const rules = typeof permission === "string" ? { "*": permission } : { ...permission }
  const shell = rules.bash ?? rules["*"]
  const [first, ...others] = Object.entries(typeof shell === "string" ? { "*": shell } : (shell ?? {}))
  if (first?.[0] !== "*" || first[1] !== "ask") return permission
  const ours = [...FREE.map((pattern) => [pattern, "allow"]), [REDIRECTED, "ask"]]
  return { ...rules, bash: Object.fromEntries([first, ...ours, ...others]) }
}

export const AgentMailbox = async ({ client, directory }) => {
  const roots = new Map() // a session -> the one it works for: itself, or the one whose subagent it is
  const starts = new Map() // a session -> how it began; empty once its first prompt told that
  const speaks = new Map() // a session -> the agent, model and tools of its last prompt, which a wake must not change
  const bells = new Map() // an idle session -> the process that waits for its mail
  const asked = new Map() // a hook that may wait for a lead's answer -> its session
  const ended = new Map() // a session -> how many of its turns ended
  const notes = new Map() // a tool's call -> what the model is told beside its result

  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OTHERS.test(name)))
  const start = (event, id, fields) => {
    const env = {
      ...environment, OPENCODE_SESSION_ID: id, OPENCODE_PID: String(process.pid), CLAUDE_PROJECT_DIR: directory,
    }
    const child = spawn(HOOK, [event, "opencode"], { cwd: directory, env, stdio: ["pipe", "pipe", "ignore"] })
    child.on("error", () => {})
    child.stdin?.on("error", () => {}) // the shell's guard mostly ends without reading
    child.stdin?.end(JSON.stringify({ session_id: id, cwd: directory, hook_event_name: event, ...fields }))
    return child
  }

  const call = (event, id, fields) =>
    new Promise((done) => {
      let text = ""
      const child = start(event, id, fields)
      if (event === "Permit") asked.set(child, id)
      child.stdout?.setEncoding("utf8").on("data", (part) => (text += part))
      const end = () => {
        asked.delete(child)
        if (child.killed) return done({ permissionDecision: "deny", permissionDecisionReason: BROKEN_OFF })
        try {
          const said = JSON.parse(text)
          if (said.systemMessage) warn(said.systemMessage)
          done(said.hookSpecificOutput ?? {})
        } catch {
          done({})
        }
      }
      child.on("close", end).on("error", end)
    })

  const warn = (message) => {
    const variant = /^(agent-mailbox: this session is|mail from) /.test(message) ? "info" : "warning"
    return client.tui.showToast({ body: { message, variant } }).catch(() => {})
  }

  const root = async (id) => {
    if (!roots.has(id)) {
      const found = await client.session.get({ path: { id } }).catch(() => ({}))
      const parent = found.data?.parentID
      roots.set(id, parent ? await root(parent) : id)
    }
    return roots.get(id)
  }

  const silence = (id) => {
    bells.get(id)?.kill()
    bells.delete(id)
  }

  const listen = (id) => {
    if (ends || bells.has(id) || !speaks.has(id)) return
    const bell = start("Doorbell", id, {})
    bells.set(id, bell)
    bell.on("close", (code) => {
      if (bells.get(id) !== bell) return
      bells.delete(id)
      if (code !== WAKE) return
      const parts = [{ type: "text", text: LINE }]
      client.session.promptAsync({ path: { id }, body: { ...speaks.get(id), parts } }).catch(() => {})
    })
  }

  const idle = async (id) => {
    ended.set(id, (ended.get(id) ?? 0) + 1)
    for (const [child, session] of asked) if (session === id) child.kill() // its turn was broken off: it asks no more
    if ((await root(id)) !== id || !speaks.has(id)) return
    await call("Stop", id, {})
    listen(id)
  }

  return {
    config: async (config) => {
      config.permission = permitted(config.permission)
      if (!isTold(directory)) config.instructions = [...(config.instructions ?? []), SECTION]
    },

    event: async ({ event: { type, properties } }) => {
      if (type === "session.created" && !properties.info.parentID) starts.set(properties.info.id, "startup")
      if (type === "session.compacted" && speaks.has(properties.sessionID)) starts.set(properties.sessionID, "compact")
      if (type === "session.status" && properties.status.type !== "idle") silence(properties.sessionID)
      if (type === "session.idle") await idle(properties.sessionID)
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      if ((await root(sessionID)) !== sessionID || !parts.length) return
      silence(sessionID)
      const { providerID, modelID, variant } = message.model
      const { agent, tools, system } = message
      speaks.set(sessionID, { agent, tools, system, variant, model: { providerID, modelID } })
      const source = starts.get(sessionID) ?? "resume"
      starts.set(sessionID, "")
      const { additionalContext: text } = await call(source ? "SessionStart" : "UserPromptSubmit", sessionID, { source })
      const id = `${parts.at(-1).id}z` // the client sorts them by it
      if (text) parts.push({ id, sessionID, messageID: message.id, type: "text", synthetic: true, text })
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const id = await root(sessionID)
      const turn = ended.get(id)
      const name = TOOLS[tool] ?? `mcp__${tool}`
      const agent = id === sessionID ? {} : { agent_id: sessionID }
      const judges = name === "Bash" ? ["PreToolUse", "Permit"] : ["Permit"]
      if (WRITES.includes(name) || name.startsWith("mcp__")) judges.unshift("Files")
      for (const judge of judges)
        for (const input of inputs(tool, args, directory)) {
          const cwd = resolve(directory, args.workdir ?? "")
          if (ended.get(id) !== turn) throw new Error(BROKEN_OFF)
          const fields = { cwd, hook_event_name: "PreToolUse", tool_name: name, tool_input: input }
          const said = await call(judge, id, { ...fields, tool_use_id: callID, ...agent })
          if (said.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
          const changed = said.updatedInput?.command
          if (name === "Bash" && typeof changed === "string") args.command = changed // in place: another object counts for nothing
          if (said.additionalContext) notes.set(callID, said.additionalContext)
        }
    },

    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const told = [notes.get(callID)]
      notes.delete(callID)
      const id = await root(sessionID)
      const agent = id === sessionID ? {} : { agent_id: sessionID }
      const cwd = resolve(directory, args?.workdir ?? "")
      const [input] = args ? inputs(tool, args, directory) : []
      const ran = { cwd, tool_name: TOOLS[tool] ?? `mcp__${tool}`, tool_input: input, tool_use_id: callID }
      told.push((await call("PostToolUse", id, { ...ran, ...agent })).additionalContext)
      const text = told.filter(Boolean).join("\n\n")
      if (!text) return
      if (typeof output.output === "string") output.output += `\n\n${text}`
      else output.content?.push({ type: "text", text })
    },

    "shell.env": async ({ sessionID }, { env }) => {
      if (!sessionID) return
      env.OPENCODE_SESSION_ID = await root(sessionID)
      for (const name of NAMES) if (process.env[name]) env[name] = ""
    },

    dispose: async () => {
      const mine = [...speaks.keys()]
      mine.forEach(silence)
      await Promise.all(mine.map((id) => call("SessionEnd", id, { reason: "exit" })))
    },
  }
}
