// SPDX-License-Identifier: Apache-2.0
#include "tasks/languages.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace cyb {
namespace {

using Form = Languages::Form;

// Two letters as people write them, and the code with its script.
constexpr std::pair<const char*, const char*> kScripts[] = {
    {"ar", "arb_Arab"}, {"bg", "bul_Cyrl"}, {"bn", "ben_Beng"}, {"ca", "cat_Latn"}, {"cs", "ces_Latn"},
    {"da", "dan_Latn"}, {"de", "deu_Latn"}, {"el", "ell_Grek"}, {"en", "eng_Latn"}, {"es", "spa_Latn"},
    {"et", "est_Latn"}, {"eu", "eus_Latn"}, {"fa", "pes_Arab"}, {"fi", "fin_Latn"}, {"fr", "fra_Latn"},
    {"gl", "glg_Latn"}, {"he", "heb_Hebr"}, {"hi", "hin_Deva"}, {"hr", "hrv_Latn"}, {"hu", "hun_Latn"},
    {"hy", "hye_Armn"}, {"id", "ind_Latn"}, {"is", "isl_Latn"}, {"it", "ita_Latn"}, {"ja", "jpn_Jpan"},
    {"ka", "kat_Geor"}, {"kk", "kaz_Cyrl"}, {"ko", "kor_Hang"}, {"lt", "lit_Latn"}, {"lv", "lvs_Latn"},
    {"ms", "zsm_Latn"}, {"nb", "nob_Latn"}, {"nl", "nld_Latn"}, {"no", "nob_Latn"}, {"pl", "pol_Latn"},
    {"pt", "por_Latn"}, {"ro", "ron_Latn"}, {"ru", "rus_Cyrl"}, {"sk", "slk_Latn"}, {"sl", "slv_Latn"},
    {"sr", "srp_Cyrl"}, {"sv", "swe_Latn"}, {"sw", "swh_Latn"}, {"ta", "tam_Taml"}, {"te", "tel_Telu"},
    {"th", "tha_Thai"}, {"tr", "tur_Latn"}, {"uk", "ukr_Cyrl"}, {"ur", "urd_Arab"}, {"vi", "vie_Latn"},
    {"zh", "zho_Hans"}};

bool all_of(std::string_view s, bool (*is)(char)) {
  return !s.empty() && std::all_of(s.begin(), s.end(), is);
}
bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool letter(char c) { return lower(c) || upper(c) || c == '_' || c == '-'; }

// What form of name a token is, and the name in it.
std::pair<Form, std::string_view> read(std::string_view t) {
  if (t.size() > 4 && t.starts_with(">>") && t.ends_with("<<") && all_of(t.substr(2, t.size() - 4), letter))
    return {Form::arrows, t.substr(2, t.size() - 4)};
  if ((t.size() == 6 || t.size() == 7) && t.starts_with("__") && t.ends_with("__") &&
      all_of(t.substr(2, t.size() - 4), lower))
    return {Form::underscores, t.substr(2, t.size() - 4)};
  if (t.size() == 5 && all_of(t.substr(0, 2), lower) && t[2] == '_' && all_of(t.substr(3), upper))
    return {Form::region, t};
  if (t.size() == 8 && all_of(t.substr(0, 3), lower) && t[3] == '_' && upper(t[4]) &&
      all_of(t.substr(5), lower))
    return {Form::script, t};
  return {Form::none, {}};
}

}  // namespace

Languages::Languages(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.size(); id++) {
    const auto [form, name] = read(tokenizer.token_text(id));
    if (form == Form::none || (form != Form::arrows && !tokenizer.is_special(id))) continue;
    if (form_ != Form::none && form != form_) continue;
    form_ = form;
    known_.emplace_back(name, id);
  }
  std::sort(known_.begin(), known_.end());
}

bool Languages::contains(int32_t id) const {
  return std::any_of(known_.begin(), known_.end(), [id](const auto& k) { return k.second == id; });
}

std::string Languages::list() const {
  std::string out;
  for (const auto& [name, id] : known_) out += (out.empty() ? "" : ", ") + name;
  return out;
}

int32_t Languages::find(const std::string& name) const {
  if (empty())
    throw error(ErrorKind::Usage, "the model has no tokens for languages")
        .advise("leave --from and --to out, unless the model was trained with other names for its tasks");
  for (const auto& [known, id] : known_)
    if (known == name) return id;
  if (form_ == Form::script)
    for (const auto& [two, code] : kScripts)
      if (name == two) return name == code ? -1 : find(code);
  std::string several;
  int32_t found = -1;
  for (const auto& [known, id] : known_)
    if (known.starts_with(name + "_")) {
      several += (several.empty() ? "" : ", ") + known;
      found = found < 0 ? id : -2;
    }
  if (found >= 0) return found;
  if (!several.empty())
    throw error(ErrorKind::Usage, "the language '{}' may be {}", name, several).advise("name one of them");
  throw error(ErrorKind::Usage, "the model does not know the language '{}'", name)
      .advise("it knows: {}", list());
}

}  // namespace cyb
