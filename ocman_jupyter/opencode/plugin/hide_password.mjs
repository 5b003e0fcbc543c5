// Blanks OpenCode's server password in every shell that OpenCode starts (bash tool, /shell, terminals),
// so that an agent cannot answer its own asks.  What remains readable: see docs on the password.
export const OcmanHidePassword = async () => ({
  "shell.env": async (_input, output) => {
    output.env.OPENCODE_SERVER_PASSWORD = ""
    output.env.OPENCODE_SERVER_USERNAME = ""
  },
})
