// SPDX-License-Identifier: Apache-2.0
// The frame of the program: each command is one file that adds itself to the parser.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cyb {

// Parses, runs, prints errors. 0: done, 1: failure, 2: wrong usage.
int cli_main(int argc, char** argv);

// Each adds a sub-command with its options; its callback does the work and throws Error, or Exit for a status
// of its own. commands() in cli.cc lists them in the order of the help.
void add_fetch_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_transcribe_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_classify_command(CLI::App& app);
void add_ner_command(CLI::App& app);
void add_fill_mask_command(CLI::App& app);
void add_rerank_command(CLI::App& app);
void add_answer_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_perplexity_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_test_command(CLI::App& app);
void add_status_command(CLI::App& app);
void add_list_command(CLI::App& app);
void add_rm_command(CLI::App& app);

// Ends the program with this status; what there was to say has been said.
struct Exit {
  int status;
};

// The text below a command's help: one line for each example.
std::string examples(const std::vector<std::string>& lines);

// Two lines on stderr: what was found, what to do.
void print_error(const std::string& message, const std::string& advice);

}  // namespace cyb
