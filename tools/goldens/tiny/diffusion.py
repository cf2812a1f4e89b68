# SPDX-License-Identifier: Apache-2.0
"""Diffusion: U-Nets, transformers, autoencoders, schedulers."""
import torch
from torch import nn

from .core import SEED, family, reseed, rnd
from .vision import image

# ------------------------------------------------------------------ diffusers: helpers
def dm(cls_name, **kw):
    import diffusers
    torch.manual_seed(SEED)
    return reseed(getattr(diffusers, cls_name)(**kw).float())


class VAE(nn.Module):
    """Deterministic autoencoder pass: mode of the posterior, then decode."""

    def __init__(self, inner, scaling=None):
        super().__init__()
        self.inner = inner

    def save_pretrained(self, d):
        self.inner.save_pretrained(d)

    def forward(self, sample, **kw):
        post = self.inner.encode(sample)
        z = post.latent_dist.mode() if hasattr(post, "latent_dist") else post.latents
        out = self.inner.decode(z, **kw)
        return dict(sample=out.sample, latent=z)


# ------------------------------------------------------------------ latent diffusion with a U-Net
UNET = dict(sample_size=16, in_channels=4, out_channels=4, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)


@family("unet_sd15")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
           up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24, attention_head_dim=2)
    return m, dict(sample=rnd(1, 4, 16, 12), timestep=torch.tensor(37), encoder_hidden_states=rnd(1, 7, 24, seed=12))


@family("unet_sd2_linear_proj_vpred")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
           up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24, attention_head_dim=(2, 4), use_linear_projection=True)
    return m, dict(sample=rnd(1, 4, 16, 16), timestep=torch.tensor(500), encoder_hidden_states=rnd(1, 7, 24, seed=12))


@family("unet_sdxl")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
           up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=24, attention_head_dim=(2, 4), use_linear_projection=True,
           transformer_layers_per_block=(1, 2), addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=68)
    return m, dict(sample=rnd(1, 4, 16, 16), timestep=torch.tensor(500), encoder_hidden_states=rnd(1, 7, 24, seed=12),
                   added_cond_kwargs=dict(text_embeds=rnd(1, 20, seed=13), time_ids=torch.tensor([[64., 64., 0., 0., 64., 64.]])))


def akl(**kw):
    return VAE(dm("AutoencoderKL", **{**dict(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2,
                                            up_block_types=("UpDecoderBlock2D",) * 2, block_out_channels=(8, 16), layers_per_block=1,
                                            latent_channels=4, norm_num_groups=4), **kw})), dict(sample=image(16))


family("vae_sd")(lambda: akl())
family("vae_flux_sd3_16ch_noquant")(lambda: akl(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159, scaling_factor=0.3611))
family("vae_tiny_taesd")(lambda: (VAE(dm("AutoencoderTiny", encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16),
                                        num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1))), dict(sample=image(16))))


# ------------------------------------------------------------------ diffusion transformers
def rope_ids(h, w):
    t = torch.zeros(h, w, 3)
    t[..., 1] += torch.arange(h)[:, None]
    t[..., 2] += torch.arange(w)[None]
    return t.reshape(-1, 3)


@family("flux_dev")
def _():
    m = dm("FluxTransformer2DModel", patch_size=1, in_channels=16, num_layers=1, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
           joint_attention_dim=24, pooled_projection_dim=20, guidance_embeds=True, axes_dims_rope=(4, 6, 6))
    return m, dict(hidden_states=rnd(1, 12, 16), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([0.7]), guidance=torch.tensor([3.5]), img_ids=rope_ids(3, 4), txt_ids=torch.zeros(5, 3))


@family("flux_schnell")
def _():
    m = dm("FluxTransformer2DModel", patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
           joint_attention_dim=24, pooled_projection_dim=20, guidance_embeds=False, axes_dims_rope=(4, 6, 6))
    return m, dict(hidden_states=rnd(1, 12, 16), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([0.25]), img_ids=rope_ids(3, 4), txt_ids=torch.zeros(5, 3))


def sd3(**kw):
    m = dm("SD3Transformer2DModel", **{**dict(sample_size=8, patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16,
                                             num_attention_heads=2, joint_attention_dim=24, caption_projection_dim=32, pooled_projection_dim=20,
                                             pos_embed_max_size=10), **kw})
    return m, dict(hidden_states=rnd(1, 4, 12, 8), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([601.0]))


family("sd3_medium")(lambda: sd3())
family("sd35_large_qknorm")(lambda: sd3(qk_norm="rms_norm"))
family("sd35_medium_dual_attention")(lambda: sd3(qk_norm="rms_norm", dual_attention_layers=(0,)))


@family("hunyuan_video")
def _():
    m = dm("HunyuanVideoTransformer3DModel", in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=12, num_layers=1,
           num_single_layers=1, num_refiner_layers=1, mlp_ratio=2.0, patch_size=2, patch_size_t=1, guidance_embeds=True, text_embed_dim=20,
           pooled_projection_dim=16, rope_axes_dim=(4, 4, 4))
    mask = torch.ones(1, 6, dtype=torch.long)
    mask[:, 4:] = 0
    return m, dict(hidden_states=rnd(1, 4, 3, 4, 6), timestep=torch.tensor([801]), encoder_hidden_states=rnd(1, 6, 20, seed=12),
                   encoder_attention_mask=mask, pooled_projections=rnd(1, 16, seed=13), guidance=torch.tensor([6000.0]))


@family("mochi")
def _():
    m = dm("MochiTransformer3DModel", patch_size=2, num_attention_heads=2, attention_head_dim=12, num_layers=2, pooled_projection_dim=18,
           in_channels=4, text_embed_dim=16, time_embed_dim=8, max_sequence_length=6)
    mask = torch.ones(1, 6, dtype=torch.bool)
    mask[:, 4:] = False
    return m, dict(hidden_states=rnd(1, 4, 2, 4, 6), timestep=torch.tensor([333]), encoder_hidden_states=rnd(1, 6, 16, seed=12), encoder_attention_mask=mask)


WAN = dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=20, freq_dim=8, ffn_dim=40,
           num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32)


def wan_in(t, ch=4):
    return dict(hidden_states=rnd(1, ch, 3, 4, 6), timestep=t, encoder_hidden_states=rnd(1, 7, 20, seed=12))


family("wan21_t2v")(lambda: (dm("WanTransformer3DModel", **WAN), wan_in(torch.tensor([900]))))
family("wan22_ti2v_5b_per_token_timestep")(lambda: (dm("WanTransformer3DModel", **WAN), wan_in(torch.tensor([[0] * 6 + [900] * 12]))))
family("wan22_i2v_channel_concat")(lambda: (dm("WanTransformer3DModel", **{**WAN, "in_channels": 9}), wan_in(torch.tensor([900]), 9)))


@family("wan21_i2v_clip")
def _():
    m = dm("WanTransformer3DModel", **{**WAN, "in_channels": 9, "image_dim": 10, "added_kv_proj_dim": 24})
    x = wan_in(torch.tensor([900]), 9)
    x["encoder_hidden_states"] = rnd(1, 512, 20, seed=12)       # the split point of text and image tokens is 512 from the end
    x["encoder_hidden_states_image"] = rnd(1, 5, 10, seed=14)
    return m, x


class WanMoE(nn.Module):
    """Wan 2.2 A14B: two full transformers; t >= boundary_ratio * 1000 takes `transformer` (high noise), else `transformer_2`."""

    def __init__(self, boundary=0.875):
        super().__init__()
        self.transformer = dm("WanTransformer3DModel", **WAN)
        self.transformer_2 = reseed(dm("WanTransformer3DModel", **WAN), SEED + 1)
        self.boundary = boundary * 1000

    def forward(self, timesteps, hidden_states, encoder_hidden_states):
        x = hidden_states
        for t in timesteps:
            net = self.transformer if float(t) >= self.boundary else self.transformer_2
            x = x - 0.25 * net(hidden_states=x, timestep=t[None], encoder_hidden_states=encoder_hidden_states).sample
        return x


@family("wan22_moe_pair")
def _():
    x = wan_in(None)
    del x["timestep"]
    return WanMoE(), dict(timesteps=torch.tensor([999., 880., 870., 300.]), **x)


WVAE = dict(base_dim=6, z_dim=4, dim_mult=[1, 2, 2], num_res_blocks=1, attn_scales=[], temperal_downsample=[True, True],
            latents_mean=[0.0] * 4, latents_std=[1.0] * 4)
family("wan21_vae")(lambda: (VAE(dm("AutoencoderKLWan", **WVAE)), dict(sample=rnd(1, 3, 9, 16, 16) * 0.5)))
family("wan22_vae_residual_patch")(lambda: (VAE(dm("AutoencoderKLWan", **{**WVAE, **dict(is_residual=True, patch_size=2, in_channels=12, out_channels=12,
                                                                                      base_dim=4, decoder_base_dim=6)})), dict(sample=rnd(1, 3, 9, 32, 32) * 0.5)))


@family("ltx_video")
def _():
    m = dm("LTXVideoTransformer3DModel", in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=10, cross_attention_dim=20,
           num_layers=2, caption_channels=14)
    mask = torch.ones(1, 6, dtype=torch.long)
    mask[:, 4:] = 0
    return m, dict(hidden_states=rnd(1, 3 * 2 * 3, 8), encoder_hidden_states=rnd(1, 6, 14, seed=12), timestep=torch.tensor([600]),
                   encoder_attention_mask=mask, num_frames=3, height=2, width=3, rope_interpolation_scale=(8 / 25, 32, 32))


@family("ltx_vae")
def _():
    m = dm("AutoencoderKLLTXVideo", in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(8, 16), decoder_block_out_channels=(8, 16),
           spatio_temporal_scaling=(True, False), decoder_spatio_temporal_scaling=(True, False), layers_per_block=(1, 1, 1),
           decoder_layers_per_block=(1, 1, 1), decoder_inject_noise=(False, False, False), upsample_residual=(False, False), upsample_factor=(1, 1),
           down_block_types=("LTXVideoDownBlock3D",) * 2, patch_size=2, patch_size_t=1, encoder_causal=True, decoder_causal=False,
           timestep_conditioning=False)
    return VAE(m), dict(sample=rnd(1, 3, 3, 16, 16) * 0.5)


@family("hunyuan_vae")
def _():
    m = dm("AutoencoderKLHunyuanVideo", in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(8, 8, 8, 8), layers_per_block=1,
           norm_num_groups=4, down_block_types=("HunyuanVideoDownBlock3D",) * 4, up_block_types=("HunyuanVideoUpBlock3D",) * 4)
    return VAE(m), dict(sample=rnd(1, 3, 5, 16, 16) * 0.5)


@family("mochi_vae")
def _():
    m = dm("AutoencoderKLMochi", in_channels=15, out_channels=3, encoder_block_out_channels=(32, 32, 32, 32), decoder_block_out_channels=(32, 32, 32, 32),
           latent_channels=4, layers_per_block=(1, 1, 1, 1, 1))
    return VAE(m), dict(sample=rnd(1, 3, 7, 16, 16) * 0.5)


@family("stable_audio_dit")
def _():
    from diffusers.models.embeddings import get_1d_rotary_pos_embed
    m = dm("StableAudioDiTModel", sample_size=12, in_channels=6, num_layers=2, attention_head_dim=8, num_attention_heads=4, num_key_value_attention_heads=2,
           out_channels=6, cross_attention_dim=16, time_proj_dim=8, global_states_input_dim=20, cross_attention_input_dim=14)
    rot = get_1d_rotary_pos_embed(4, 13, use_real=True, repeat_interleave_real=False)     # half of head_dim; one extra (global) token
    return m, dict(hidden_states=rnd(1, 6, 12), timestep=torch.tensor([0.4]), encoder_hidden_states=rnd(1, 5, 14, seed=12),
                   global_hidden_states=rnd(1, 1, 20, seed=13), rotary_embedding=rot)


family("stable_audio_oobleck_vae")(lambda: (VAE(dm("AutoencoderOobleck", encoder_hidden_size=12, downsampling_ratios=[2, 4], channel_multiples=[1, 2],
                                                    decoder_channels=8, decoder_input_channels=6, audio_channels=2)), dict(sample=rnd(1, 2, 64))))


# ------------------------------------------------------------------ schedulers (run against an analytic stand-in model)
class Sampler(nn.Module):
    """x -> the state after a whole denoising loop; the stand-in model is sin(1.3 x + 0.05 i), i = number of the call."""

    def __init__(self, cls, steps, set_kw=None, v_start=True, step_kw=None, **kw):
        super().__init__()
        import diffusers
        self.sch = getattr(diffusers, cls)(**kw)
        self.steps, self.set_kw, self.step_kw = steps, set_kw or {}, step_kw or {}

    def forward(self, x):
        s = self.sch
        if "sigmas" in self.set_kw:
            s.set_timesteps(**self.set_kw)
        else:
            s.set_timesteps(self.steps, **self.set_kw)
        x = x * getattr(s, "init_noise_sigma", 1.0)
        for i, t in enumerate(s.timesteps):
            xi = s.scale_model_input(x, t) if hasattr(s, "scale_model_input") else x
            x = s.step(torch.sin(1.3 * xi + 0.05 * i), t, x, **self.step_kw).prev_sample
        return x


SD_BETAS = dict(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")


def sched(name, cls, steps=6, **kw):
    family("sched_" + name)(lambda: (Sampler(cls, steps, **kw), dict(x=rnd(1, 4, 4, 4))))


sched("ddim", "DDIMScheduler", **SD_BETAS, clip_sample=False, set_alpha_to_one=False, steps_offset=1)
sched("ddim_vpred_zsnr_trailing", "DDIMScheduler", **SD_BETAS, clip_sample=False, prediction_type="v_prediction", rescale_betas_zero_snr=True,
      timestep_spacing="trailing")
sched("pndm", "PNDMScheduler", **SD_BETAS, skip_prk_steps=True, set_alpha_to_one=False, steps_offset=1)
sched("euler", "EulerDiscreteScheduler", **SD_BETAS, steps_offset=1, timestep_spacing="leading")
sched("euler_karras_trailing", "EulerDiscreteScheduler", **SD_BETAS, use_karras_sigmas=True, timestep_spacing="trailing")
sched("euler_vpred", "EulerDiscreteScheduler", **SD_BETAS, prediction_type="v_prediction")
sched("heun", "HeunDiscreteScheduler", **SD_BETAS)
sched("dpmpp_2m", "DPMSolverMultistepScheduler", **SD_BETAS, algorithm_type="dpmsolver++", solver_order=2, solver_type="midpoint", lower_order_final=True)
sched("dpmpp_2m_karras", "DPMSolverMultistepScheduler", **SD_BETAS, algorithm_type="dpmsolver++", use_karras_sigmas=True)
sched("unipc", "UniPCMultistepScheduler", **SD_BETAS, solver_order=2, solver_type="bh2")
sched("flow_euler_shift3", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=3.0)
sched("flow_euler_dynamic_flux", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=3.0, use_dynamic_shifting=True, base_shift=0.5,
      max_shift=1.15, base_image_seq_len=256, max_image_seq_len=4096, set_kw=dict(sigmas=[1.0, 0.8, 0.6, 0.4, 0.2], mu=0.9))
sched("flow_unipc_wan", "UniPCMultistepScheduler", num_train_timesteps=1000, prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0,
      solver_order=2, solver_type="bh2")
sched("flow_ltx_terminal", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=1.0, use_dynamic_shifting=True, shift_terminal=0.1,
      base_shift=0.95, max_shift=2.05, base_image_seq_len=1024, max_image_seq_len=4096, set_kw=dict(sigmas=[1.0, 0.75, 0.5, 0.25], mu=1.2))
sched("edm_dpmpp_stable_audio_ode", "EDMDPMSolverMultistepScheduler", sigma_min=0.3, sigma_max=500.0, sigma_data=1.0, sigma_schedule="exponential",
      prediction_type="v_prediction", solver_order=2)
