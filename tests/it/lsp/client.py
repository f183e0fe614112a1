"""Drives `kopf lsp` with pygls, a client and server library of the Language Server Protocol: python client.py KOPF DIRECTORY."""
import asyncio
import pathlib
import sys

from lsprotocol import types
from pygls.lsp.client import LanguageClient

TEXT = """local ready = "Ready"
kopf.on_create("sites", function(ctx)
    ctx.patch.staus.phase = ready
    print(ctx.spec.)
end)
kopf.test("it works", function(ctx) end)
"""


async def main(kopf, directory):
    client = LanguageClient("client", "1")
    diagnostics = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params):
        diagnostics.put_nowait(params)

    await client.start_io(kopf, "lsp")
    capabilities = types.ClientCapabilities()
    root = pathlib.Path(directory).as_uri()
    params = types.InitializeParams(capabilities=capabilities, root_uri=root, process_id=None)
    answer = await client.initialize_async(params)
    assert answer.capabilities.hover_provider, answer
    client.initialized(types.InitializedParams())
    uri = (pathlib.Path(directory) / "handlers_test.lua").as_uri()
    item = types.TextDocumentItem(uri=uri, language_id="lua", version=1, text=TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    found = await diagnostics.get()
    codes = [(it.code, it.range.start.line) for it in found.diagnostics]
    assert codes == [("syntax", 3), ("unknown-member", 2)], codes

    document = types.TextDocumentIdentifier(uri=uri)
    place = types.Position(line=3, character=19)
    completion = types.CompletionParams(text_document=document, position=place)
    labels = [it.label for it in await client.text_document_completion_async(completion)]
    assert labels == ["host", "port"], labels
    place = types.Position(line=1, character=7)
    hover = await client.text_document_hover_async(types.HoverParams(text_document=document, position=place))
    assert "kopf.on_create" in hover.contents.value, hover
    place = types.Position(line=2, character=29)
    definition = types.DefinitionParams(text_document=document, position=place)
    target = await client.text_document_definition_async(definition)
    assert (target.range.start.line, target.range.start.character) == (0, 6), target
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(text_document=document))
    assert [it.command.arguments[1] for it in lenses] == ["it works"], lenses

    changed = types.TextDocumentContentChangeWholeDocument(text="print(ready)\nlocal ready = 1\n")
    versioned = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
    client.text_document_did_change(types.DidChangeTextDocumentParams(text_document=versioned, content_changes=[changed]))
    found = await diagnostics.get()
    assert [(it.code, found.version) for it in found.diagnostics] == [("unknown-variable", 2)], found
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    print("served by kopf lsp:", answer.server_info.name)


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 60))
