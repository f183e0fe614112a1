// Checks scripts with the type checker of Luau against definitions, as editors and luau-analyze do:
//
//     luau-check DEFINITIONS SCRIPT...
//
// Both solvers (luau-lsp uses the old one by default, luau-analyze the new one) check each script in both modes. Each finding is printed
// to stdout: `old strict: handlers.lua:1:10: what is wrong`. The exit code is 1 if there are findings, 2 if the definitions themselves
// are invalid or a file cannot be read.

#include "Luau/BuiltinDefinitions.h"
#include "Luau/ConfigResolver.h"
#include "Luau/Error.h"
#include "Luau/FileResolver.h"
#include "Luau/Frontend.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

using Files = std::map<std::string, std::string>;

std::string textOf(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Resolver : Luau::FileResolver
{
    explicit Resolver(const Files& files)
        : files(files)
    {
    }

    std::optional<Luau::SourceCode> readSource(const Luau::ModuleName& name) override
    {
        const auto found = files.find(name);
        if (found == files.end())
            return std::nullopt;
        return Luau::SourceCode{found->second, Luau::SourceCode::Module};
    }

    const Files& files;
};

struct Mode : Luau::ConfigResolver
{
    explicit Mode(Luau::Mode mode)
    {
        config.mode = mode;
    }

    const Luau::Config& getConfig(const Luau::ModuleName&, const Luau::TypeCheckLimits&) const override
    {
        return config;
    }

    Luau::Config config;
};

void tell(const std::string& label, const std::string& path, const Luau::Position& at, const std::string& what)
{
    std::string line;
    for (const char it : what)
        line += it == '\n' ? ' ' : it;
    std::printf("%s: %s:%u:%u: %s\n", label.c_str(), path.c_str(), at.line + 1, at.column + 1, line.c_str());
}

struct Definitions
{
    std::string path;
    std::string text;
};

/// Prints the findings of one solver in one mode; returns their number.
size_t check(Luau::SolverMode solver, Luau::Mode mode, const Definitions& definitions, const Files& scripts)
{
    std::string label = solver == Luau::SolverMode::New ? "new " : "old ";
    label += mode == Luau::Mode::Strict ? "strict" : "nonstrict";
    Resolver resolver{scripts};
    Mode config{mode};
    Luau::FrontendOptions options;
    options.runLintChecks = true;
    Luau::Frontend frontend{&resolver, &config, options};
    frontend.setLuauSolverMode(solver);
    Luau::unfreeze(frontend.globals.globalTypes);
    Luau::registerBuiltinGlobals(frontend, frontend.globals);
    const Luau::LoadDefinitionFileResult loaded =
        frontend.loadDefinitionFile(frontend.globals, frontend.globals.globalScope, definitions.text, "@kopf", false);
    Luau::freeze(frontend.globals.globalTypes);
    for (const Luau::ParseError& it : loaded.parseResult.errors)
        tell(label, definitions.path, it.getLocation().begin, it.getMessage());
    if (loaded.module)
        for (const Luau::TypeError& it : loaded.module->errors)
            tell(label, definitions.path, it.location.begin, Luau::toString(it));
    if (!loaded.success)
        throw std::runtime_error(definitions.path + ": these are no definitions");
    size_t found = 0;
    for (const auto& [path, text] : scripts)
    {
        const Luau::CheckResult result = frontend.check(path);
        for (const Luau::TypeError& it : result.errors)
            tell(label, path, it.location.begin, Luau::toString(it));
        for (const Luau::LintWarning& it : result.lintResult.errors)
            tell(label, path, it.location.begin, it.text);
        for (const Luau::LintWarning& it : result.lintResult.warnings)
            tell(label, path, it.location.begin, it.text);
        found += result.errors.size() + result.lintResult.errors.size() + result.lintResult.warnings.size();
    }
    return found;
}

} // namespace

int main(int count, char** values)
{
    const std::vector<std::string> arguments(values + 1, values + count);
    try
    {
        if (arguments.size() < 2)
            throw std::runtime_error("luau-check DEFINITIONS SCRIPT...");
        const Definitions definitions{arguments[0], textOf(arguments[0])};
        Files scripts;
        for (size_t index = 1; index < arguments.size(); ++index)
            scripts[arguments[index]] = textOf(arguments[index]);
        size_t found = 0;
        for (const Luau::SolverMode solver : {Luau::SolverMode::New, Luau::SolverMode::Old})
            for (const Luau::Mode mode : {Luau::Mode::Nonstrict, Luau::Mode::Strict})
                found += check(solver, mode, definitions, scripts);
        return found == 0 ? 0 : 1;
    }
    catch (const std::exception& problem)
    {
        std::fprintf(stderr, "error: %s\n", problem.what());
        return 2;
    }
}
