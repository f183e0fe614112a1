//! The files of a starter operator.

use serde_json::json;

use super::sample;
use crate::cli::report::Report;
use crate::scripting::surface::CustomKind;

/// The CRD of the starter's own kind.
pub(super) const CRD: &str = include_str!("greeting.yaml");

/// The location of the type definitions for editors, and the syntax that Luau adds to Lua 5.1.
pub(super) const LUARC: &str = r#"{
  "runtime": {
    "version": "Lua 5.1",
    "nonstandardSymbol": ["`", "+=", "-=", "*=", "/=", "%=", "^=", "continue"]
  },
  "workspace": {
    "library": [".kopf"],
    "checkThirdParty": false
  }
}
"#;

/// The mode of Luau's type checker: `strict` requires types of parameters.
pub(super) const LUAURC: &str = "{\n  \"languageMode\": \"nonstrict\"\n}\n";

/// The location of the type definitions for luau-lsp in VS Code, which has no separate configuration file.
pub(super) const VSCODE: &str = r#"{
  "luau-lsp.platform.type": "standard",
  "luau-lsp.sourcemap.enabled": false,
  "luau-lsp.types.definitionFiles": { "@kopf": ".kopf/kopf.d.luau" }
}
"#;

/// The script that any CI system can run for each change of the operator.
pub(super) const CI: &str = include_str!("ci.sh");

/// Returns the kind of [`CRD`].
pub(super) fn greeting() -> Result<CustomKind, Report> {
    let invalid = |problem: String| Report::failure(format!("the CRD of the starter: {problem}"));
    let definition = serde_saphyr::from_str(CRD).map_err(|it| invalid(it.to_string()))?;
    CustomKind::read(&definition).map_err(invalid)
}

/// A starter operator of one kind.
pub(super) struct Starter {
    /// The custom resource of the operator.
    pub(super) kind: CustomKind,
    /// Whether this is the kind of [`CRD`], whose fields are known.
    greets: bool,
}

impl Starter {
    /// Creates an operator of this kind.
    pub(super) fn new(kind: CustomKind, greets: bool) -> Self {
        Starter { kind, greets }
    }

    fn selector(&self) -> String {
        format!("{}.{}", self.kind.plural, self.kind.group)
    }

    /// Returns the name of its object.
    fn name(&self) -> String {
        format!("my-{}", self.kind.kind.to_lowercase())
    }

    /// Returns an object of the kind.
    pub(super) fn object(&self) -> String {
        let spec =
            if self.greets { json!({"name": "world"}) } else { sample::of(self.kind.part("spec")) };
        let object = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "metadata": {"name": self.name()},
            "spec": spec,
        });
        serde_saphyr::to_string(&object).unwrap_or_else(|_no_yaml| format!("{object:#}\n"))
    }

    /// Returns the content of `handlers.lua`.
    pub(super) fn lua(&self) -> String {
        let template =
            if self.greets { include_str!("greeting.lua") } else { include_str!("starter.lua") };
        self.filled(template)
    }

    /// Returns the content of `handlers.rhai`.
    pub(super) fn rhai(&self) -> String {
        let template =
            if self.greets { include_str!("greeting.rhai") } else { include_str!("starter.rhai") };
        self.filled(template)
    }

    /// Returns the content of `tests/handlers_test.lua`.
    pub(super) fn lua_test(&self) -> String {
        self.filled(if self.greets {
            include_str!("greeting_test.lua")
        } else {
            include_str!("starter_test.lua")
        })
    }

    /// Returns the content of `tests/handlers_test.rhai`.
    pub(super) fn rhai_test(&self) -> String {
        self.filled(if self.greets {
            include_str!("greeting_test.rhai")
        } else {
            include_str!("starter_test.rhai")
        })
    }

    /// Returns the content of `README.md`.
    pub(super) fn readme(&self, rhai: bool) -> String {
        let language = if rhai { "rhai" } else { "lua" };
        let stubs = |it: &str| format!("kopf stubs {it} --from-crd crd.yaml --output .kopf");
        let stubs = if rhai { stubs("rhai") } else { [stubs("lua"), stubs("luau")].join("\n") };
        self.filled(include_str!("README.template.md"))
            .replace("STUBS", &stubs)
            .replace("LANGUAGE", language)
    }

    fn filled(&self, template: &str) -> String {
        template
            .replace("OBJECT", &self.object())
            .replace("VERSION", &self.kind.api_version())
            .replace("SELECTOR", &self.selector())
            .replace("PLURAL", &self.kind.plural)
            .replace("NAME", &self.name())
            .replace("KIND", &self.kind.kind)
    }
}
