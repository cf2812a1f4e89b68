// SPDX-License-Identifier: Apache-2.0
#include "families/family.h"

#include "families/bert_style.h"
#include "families/clip_style.h"
#include "families/convnext_style.h"
#include "families/llama_style.h"
#include "families/swin_style.h"
#include "families/t5_style.h"
#include "families/vit_style.h"
#include "families/whisper_style.h"

namespace cyb {

std::span<const Family> all_families() {
  static const Family families[] = {llama_style(), bert_style(), t5_style(),       vit_style(),
                                    clip_style(),  swin_style(), convnext_style(), whisper_style()};
  return families;
}

const Family& find_family(std::string_view model_type) {
  std::string known;
  for (const Family& family : all_families())
    for (const char* type : family.model_types) {
      if (model_type == type) return family;
      known += (known.empty() ? "" : ", ") + std::string(type);
    }
  throw error(ErrorKind::UnsupportedModel, "model type '{}' belongs to no family", model_type)
      .advise("supported types: {}", known);
}

}  // namespace cyb
