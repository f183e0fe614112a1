// Starts `kopf lsp` for scripts, and runs tests in a terminal.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

// A file and the name of a test, as one argument each, for any shell of the system.
function runTest(file, name) {
    const kopf = vscode.workspace.getConfiguration("kopf").get("path");
    const terminal = vscode.window.createTerminal({
        name: `kopf test: ${name}`,
        shellPath: kopf,
        shellArgs: ["test", file, "--only", name],
        isTransient: true,
    });
    terminal.show();
}

exports.activate = async (context) => {
    const command = vscode.workspace.getConfiguration("kopf").get("path");
    const languages = ["lua", "luau", "rhai"];
    client = new LanguageClient(
        "kopf",
        "kopf",
        { command, args: ["lsp"] },
        { documentSelector: languages.map((language) => ({ scheme: "file", language })) },
    );
    context.subscriptions.push(vscode.commands.registerCommand("kopf.runTest", runTest));
    await client.start();
};

exports.deactivate = () => client?.stop();
