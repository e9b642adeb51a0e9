// What people write from habit elsewhere, and what they would write here: one row for each word, by the place that it
// stands in. Hints that need more than a word (the name behind a module's, the method behind an underscore) follow.
#include "repl/language/habit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "repl/language/core.h"

#define DTYPES "dtypes are float32, float64, float16, bfloat16, int32, int64, uint8 and bool"
#define ONE_DEVICE "tensors lie on the CPU: leave it out"
#define FILES "list_folder, path_exists, make_folder and remove_file are built in, and so are load_text and its kin"
#define NO_HOOKS "GradientTape gives the gradient of any value: tape.gradient(y, x)"

typedef struct row {
  enum td_habit place;
  const char *word, *hint;
} row;

static const row rows[] = {
    {TD_HABIT_NAME, "help", "write ?name for its page, and name?? for its source"},
    {TD_HABIT_NAME, "Tensor", "write tensor(values), and isinstance(x, tensor)"},
    {TD_HABIT_NAME, "complex", "complex numbers are pairs along a last axis of size 2, real and imaginary part"},
    {TD_HABIT_NAME, "newaxis", "write None: x[:, None]"},
    {TD_HABIT_NAME, "function", "leave it out: the plain function is enough, everything runs at once"},
    {TD_HABIT_NAME, "jit", "leave it out: the plain function is enough, everything runs at once"},
    {TD_HABIT_NAME, "dataclass", "write a class with __init__"},
    {TD_HABIT_NAME, "load", "load_npy, load_csv, load_text and their kin read files, load_model a model"},
    {TD_HABIT_NAME, "SummaryWriter", "write w = summary_writer(folder), then w.scalar(name, value, step)"},
    {TD_HABIT_NAME, "Linear", "write Dense(outputs): it finds out how many inputs there are at its first call"},
    {TD_HABIT_NAME, "Conv1d", "write Conv1D(filters, kernel_size); channels are the last axis"},
    {TD_HABIT_NAME, "Conv2d", "write Conv2D(filters, kernel_size); channels are the last axis unless "
                              "data_format=\"channels_first\""},
    {TD_HABIT_NAME, "MaxPool2d", "write MaxPooling2D(size)"},
    {TD_HABIT_NAME, "BatchNorm1d", "write BatchNorm()"},
    {TD_HABIT_NAME, "BatchNorm2d", "write BatchNorm()"},
    {TD_HABIT_NAME, "Module", "write class Net(Model): layers in __init__, the computation in call(self, x)"},
    {TD_HABIT_NAME, "Parameter", "write Variable(value)"},
    {TD_HABIT_NAME, "CrossEntropyLoss", "write CrossEntropy(from_logits=True), called as loss(y_true, logits)"},
    {TD_HABIT_NAME, "MSELoss", "write MeanSquaredError(), or mse_loss(input, target)"},
    {TD_HABIT_NAME, "L1Loss", "write MeanAbsoluteError(), or l1_loss(input, target)"},
    {TD_HABIT_NAME, "SmoothL1Loss", "write smooth_l1_loss(input, target), or Huber() as an object"},
    {TD_HABIT_NAME, "HuberLoss", "write Huber(delta), or huber_loss(input, target)"},
    {TD_HABIT_NAME, "BCELoss", "write BinaryCrossentropy(), called as loss(y_true, probabilities)"},
    {TD_HABIT_NAME, "BCEWithLogitsLoss", "write BinaryCrossentropy(from_logits=True), called as loss(y_true, logits)"},
    {TD_HABIT_NAME, "NLLLoss", "write nll_loss(log_probabilities, target)"},
    {TD_HABIT_NAME, "KLDivLoss", "write kl_div(log_probabilities, target), or KLDivergence() of probabilities"},
    {TD_HABIT_NAME, "ModuleList", "write a list: self.blocks = [Dense(4) for _ in range(3)]"},
    {TD_HABIT_NAME, "ModuleDict", "write a dict: self.heads = {\"a\": Dense(4)}"},
    {TD_HABIT_NAME, "Dropout2d", "write SpatialDropout2D(rate)"},
    {TD_HABIT_NAME, "Conv3d", "write Conv3D(filters, kernel_size); channels are the last axis"},
    {TD_HABIT_NAME, "ConvTranspose1d", "write Conv1DTranspose(filters, kernel_size); channels are the last axis"},
    {TD_HABIT_NAME, "ConvTranspose2d", "write Conv2DTranspose(filters, kernel_size); channels are the last axis"},
    {TD_HABIT_NAME, "ConvTranspose3d", "write Conv3DTranspose(filters, kernel_size); channels are the last axis"},
    {TD_HABIT_NAME, "LazyLinear", "write Dense(outputs): it finds out how many inputs there are at its first call"},
    {TD_HABIT_NAME, "LazyConv2d",
     "write Conv2D(filters, kernel_size): it finds out how many channels there are at its first call"},
    {TD_HABIT_NAME, "MaxPool1d", "write MaxPooling1D(size)"},
    {TD_HABIT_NAME, "MaxPool3d", "write MaxPooling3D(size)"},
    {TD_HABIT_NAME, "AvgPool1d", "write AveragePooling1D(size)"},
    {TD_HABIT_NAME, "AvgPool2d", "write AveragePooling2D(size)"},
    {TD_HABIT_NAME, "AvgPool3d", "write AveragePooling3D(size)"},
    {TD_HABIT_NAME, "AdaptiveAvgPool1d", "write AdaptiveAveragePooling1D(output_size)"},
    {TD_HABIT_NAME, "AdaptiveAvgPool2d",
     "write AdaptiveAveragePooling2D(output_size); of size 1: GlobalAveragePooling2D()"},
    {TD_HABIT_NAME, "AdaptiveAvgPool3d", "write AdaptiveAveragePooling3D(output_size)"},
    {TD_HABIT_NAME, "AdaptiveMaxPool1d", "write AdaptiveMaxPooling1D(output_size)"},
    {TD_HABIT_NAME, "AdaptiveMaxPool2d", "write AdaptiveMaxPooling2D(output_size)"},
    {TD_HABIT_NAME, "AdaptiveMaxPool3d", "write AdaptiveMaxPooling3D(output_size)"},
    {TD_HABIT_NAME, "BatchNorm3d", "write BatchNorm()"},
    {TD_HABIT_NAME, "SyncBatchNorm", "write BatchNorm()"},
    {TD_HABIT_NAME, "InstanceNorm1d", "write GroupNorm(groups=-1): each channel is a group"},
    {TD_HABIT_NAME, "InstanceNorm2d", "write GroupNorm(groups=-1): each channel is a group"},
    {TD_HABIT_NAME, "InstanceNorm3d", "write GroupNorm(groups=-1): each channel is a group"},
    {TD_HABIT_NAME, "Dropout1d", "write SpatialDropout1D(rate)"},
    {TD_HABIT_NAME, "Dropout3d", "write SpatialDropout3D(rate)"},
    {TD_HABIT_NAME, "FeatureAlphaDropout",
     "write AlphaDropout(rate, noise_shape=(None, 1, 1, None)): one draw for each channel"},
    {TD_HABIT_NAME, "RNNCell", "write SimpleRNNCell(units)"},
    {TD_HABIT_NAME, "ZeroPad1d", "write ZeroPadding1D(padding)"},
    {TD_HABIT_NAME, "ZeroPad2d", "write ZeroPadding2D(padding)"},
    {TD_HABIT_NAME, "ZeroPad3d", "write ZeroPadding3D(padding)"},
    {TD_HABIT_NAME, "ConstantPad2d", "write Lambda(lambda x: pad(x, pairs, value=v)), pairs one for each axis"},
    {TD_HABIT_NAME, "ReflectionPad1d",
     "write Lambda(lambda x: pad(x, pairs, mode=\"reflect\")), pairs one for each axis"},
    {TD_HABIT_NAME, "ReflectionPad2d",
     "write Lambda(lambda x: pad(x, pairs, mode=\"reflect\")), pairs one for each axis"},
    {TD_HABIT_NAME, "ReplicationPad2d",
     "write Lambda(lambda x: pad(x, pairs, mode=\"edge\")), pairs one for each axis"},
    {TD_HABIT_NAME, "CircularPad2d", "write Lambda(lambda x: pad(x, pairs, mode=\"wrap\")), pairs one for each axis"},
    {TD_HABIT_NAME, "Upsample", "write UpSampling2D(size, interpolation=\"nearest\")"},
    {TD_HABIT_NAME, "UpsamplingNearest2d", "write UpSampling2D(size)"},
    {TD_HABIT_NAME, "UpsamplingBilinear2d", "write UpSampling2D(size, interpolation=\"bilinear\")"},
    {TD_HABIT_NAME, "Unflatten", "write Reshape(sizes)"},
    {TD_HABIT_NAME, "Unfold", "write unfold(x, kernel_size), or as a layer Lambda(lambda x: unfold(x, 3))"},
    {TD_HABIT_NAME, "Fold", "write fold(x, output_size, kernel_size)"},
    {TD_HABIT_NAME, "Sigmoid", "write Activation(\"sigmoid\"), or the function sigmoid"},
    {TD_HABIT_NAME, "Tanh", "write Activation(\"tanh\"), or the function tanh"},
    {TD_HABIT_NAME, "GELU", "write Activation(\"gelu\"), or the function gelu"},
    {TD_HABIT_NAME, "SiLU", "write Activation(\"silu\"), or the function silu"},
    {TD_HABIT_NAME, "Mish", "write Activation(\"mish\"), or the function mish"},
    {TD_HABIT_NAME, "SELU", "write Activation(\"selu\"), or the function selu"},
    {TD_HABIT_NAME, "CELU", "write Activation(\"celu\"), or the function celu"},
    {TD_HABIT_NAME, "ReLU6", "write Activation(\"relu6\"), or ReLU(max_value=6)"},
    {TD_HABIT_NAME, "GLU", "write Activation(\"glu\"), or the function glu"},
    {TD_HABIT_NAME, "Softplus", "write Activation(\"softplus\"), or the function softplus"},
    {TD_HABIT_NAME, "Softsign", "write Activation(\"softsign\"), or the function softsign"},
    {TD_HABIT_NAME, "Hardtanh", "write Activation(\"hard_tanh\"), or the function hardtanh"},
    {TD_HABIT_NAME, "Hardsigmoid", "write Activation(\"hard_sigmoid\"), or the function hard_sigmoid"},
    {TD_HABIT_NAME, "Hardswish", "write Activation(\"hard_swish\"), or the function hardswish"},
    {TD_HABIT_NAME, "Hardshrink", "write Activation(\"hard_shrink\"), or the function hardshrink"},
    {TD_HABIT_NAME, "Softshrink", "write Activation(\"soft_shrink\"), or the function softshrink"},
    {TD_HABIT_NAME, "Tanhshrink", "write Activation(\"tanh_shrink\"), or the function tanhshrink"},
    {TD_HABIT_NAME, "LogSigmoid", "write Activation(\"log_sigmoid\"), or the function log_sigmoid"},
    {TD_HABIT_NAME, "LogSoftmax", "write Activation(\"log_softmax\"), or the function log_softmax"},
    {TD_HABIT_NAME, "Softmax2d", "write Softmax(axis=-1): channels are the last axis"},
    {TD_HABIT_NAME, "Softmin", "write Lambda(softmin)"},
    {TD_HABIT_NAME, "RReLU", "write LeakyReLU(slope), or PReLU() that learns it"},
    {TD_HABIT_NAME, "MultiheadAttention",
     "write MultiHeadAttention(num_heads, key_dim), called as layer(query, value)"},
    {TD_HABIT_NAME, "TransformerEncoderLayer", "write TransformerBlock(num_heads, ff_dim)"},
    {TD_HABIT_NAME, "TransformerEncoder", "write a list of TransformerBlock(num_heads, ff_dim), or Sequential of them"},
    {TD_HABIT_NAME, "TransformerDecoderLayer",
     "write TransformerBlock(num_heads, ff_dim, causal=True); MultiHeadAttention()(x, memory) "
     "looks at the encoder"},
    {TD_HABIT_NAME, "Transformer", "write TransformerBlock(num_heads, ff_dim), one a layer"},
    {TD_HABIT_NAME, "ParameterList", "write a list: self.weights_of = [Variable(...), Variable(...)]"},
    {TD_HABIT_NAME, "ParameterDict", "write a dict: self.tables = {\"a\": Variable(...)}"},
    {TD_HABIT_NAME, "Buffer", "write Variable(value, trainable=False)"},
    {TD_HABIT_NAME, "NLLLoss2d", "write nll_loss(log_probabilities, target)"},
    {TD_HABIT_NAME, "CTCLoss",
     "write CTC(), called as loss(labels, logits), or ctc_loss(log_probabilities, targets, "
     "input_lengths, target_lengths)"},
    {TD_HABIT_NAME, "GaussianNLLLoss", "write gaussian_nll_loss(input, target, var)"},
    {TD_HABIT_NAME, "PoissonNLLLoss", "write poisson_nll_loss(input, target), or Poisson() of rates"},
    {TD_HABIT_NAME, "HingeEmbeddingLoss", "write hinge_embedding_loss(input, target)"},
    {TD_HABIT_NAME, "CosineEmbeddingLoss", "write cosine_embedding_loss(input1, input2, target)"},
    {TD_HABIT_NAME, "MarginRankingLoss", "write margin_ranking_loss(input1, input2, target)"},
    {TD_HABIT_NAME, "MultiMarginLoss", "write multi_margin_loss(input, target)"},
    {TD_HABIT_NAME, "SoftMarginLoss", "write soft_margin_loss(input, target)"},
    {TD_HABIT_NAME, "MultiLabelSoftMarginLoss", "write BinaryCrossentropy(from_logits=True)"},
    {TD_HABIT_NAME, "TripletMarginWithDistanceLoss",
     "write Triplet(margin), or triplet_margin_loss(anchor, positive, negative)"},
    {TD_HABIT_NAME, "PairwiseDistance", "write pairwise_distance(a, b)"},
    {TD_HABIT_NAME, "SparseAdam", "write Adam(vars): gradients are dense"},
    {TD_HABIT_NAME, "LossScaleOptimizer", "leave it out: training is in float32 or float64, which need no scale"},
    {TD_HABIT_NAME, "MultiOptimizer",
     "write groups: Adam([{\"params\": vars, \"lr\": 0.1}, {\"params\": others}], lr=0.01)"},
    {TD_HABIT_NAME, "Initializer", "write a function (shape, dtype=float32): it goes wherever an initializer does"},
    {TD_HABIT_NAME, "OrthogonalInitializer", "write Orthogonal(gain)"},
    {TD_HABIT_NAME, "IdentityInitializer", "write Identity(gain)"},
    {TD_HABIT_NAME, "Regularizer", "write a function of the Variable: it goes wherever a regularizer does"},
    {TD_HABIT_NAME, "orthogonal_regularizer", "write OrthogonalRegularizer(factor)"},
    {TD_HABIT_NAME, "RandomPerspective", "RandomRotation, RandomTranslation and RandomZoom move images at random"},
    {TD_HABIT_NAME, "CallbackList", "write callbacks=[...]: fit takes a list"},
    {TD_HABIT_NAME, "STFTSpectrogram", "write Lambda(lambda x: stft(x, 256, 128, 256)[0]), or MelSpectrogram()"},
    {TD_HABIT_NAME, "ProgbarLogger", "leave it out: fit(verbose=1) shows bars"},
    {TD_HABIT_NAME, "RemoteMonitor", "write LambdaCallback(on_epoch_end=lambda epoch, logs: ...)"},
    {TD_HABIT_NAME, "LogCoshError", "write metrics=[\"log_cosh\"], or get_metric(\"log_cosh\")"},
    {TD_HABIT_NAME, "InputSpec", "leave it out: build(input_shape) may raise a ValueError that says which shapes fit"},
    {TD_HABIT_NAME, "Wrapper",
     "write class Mine(Layer) that keeps the layer in an attribute: its Variables are found there"},
    {TD_HABIT_NAME, "DataParallel", "tensors lie on the CPU: leave it out"},
    {TD_HABIT_NAME, "Pipeline", "write Sequential([...]) of the layers"},
    {TD_HABIT_NAME, "deserialize",
     "write type(layer).from_config(config), or get_loss, get_metric, get_optimizer, get_activation of a name"},
    {TD_HABIT_NAME, "serialize", "write layer.get_config()"},
    {TD_HABIT_NAME, "array_to_img", "save_png(path, x) writes a picture, show(x) draws it"},
    {TD_HABIT_NAME, "save_img", "write save_png(path, x)"},
    {TD_HABIT_NAME, "plot_model", "model.summary() prints its layers"},
    {TD_HABIT_NAME, "make_csv_dataset", "write Dataset.from_csv(path, label=\"y\").shuffle(1000).batch(32)"},
    {TD_HABIT_NAME, "TextLineDataset", "write Dataset.from_lines(path)"},
    {TD_HABIT_NAME, "session", "everything runs at once: y in place of session.run(y)"},
    {TD_HABIT_NAME, "sess", "everything runs at once: y in place of sess.run(y)"},
    {TD_HABIT_NAME, "Session", "everything runs at once: y in place of session.run(y)"},
    {TD_HABIT_NAME, "placeholder", "write a function of its inputs, or Input(shape) for a model of symbols"},
    {TD_HABIT_NAME, "get_variable", "write Variable(value), or self.add_weight(shape, initializer) in a layer"},
    {TD_HABIT_NAME, "global_variables_initializer", "leave it out: a Variable has its value when it is made"},
    {TD_HABIT_NAME, "UnconnectedGradients", "write unconnected_gradients=\"zero\""},
    {TD_HABIT_NAME, "manual_seed", "write %seed 0 on a line of its own, or random.seed(0)"},
    {TD_HABIT_NAME, "set_seed", "write %seed 0 on a line of its own, or random.seed(0)"},
    {TD_HABIT_NAME, "cuda", "tensors lie on the CPU"},
    {TD_HABIT_NAME, "int8", DTYPES},
    {TD_HABIT_NAME, "int16", DTYPES},
    {TD_HABIT_NAME, "uint16", DTYPES},
    {TD_HABIT_NAME, "uint32", DTYPES},
    {TD_HABIT_NAME, "uint64", DTYPES},
    {TD_HABIT_NAME, "complex64", DTYPES},
    {TD_HABIT_NAME, "complex128", DTYPES},
    {TD_HABIT_NAME, "half", "write float16"},
    {TD_HABIT_NAME, "double", "write float64"},
    {TD_HABIT_NAME, "long", "write int64"},
    {TD_HABIT_ATTRIBUTE, "cuda", ONE_DEVICE},
    {TD_HABIT_ATTRIBUTE, "cpu", ONE_DEVICE},
    {TD_HABIT_ATTRIBUTE, "gpu", ONE_DEVICE},
    {TD_HABIT_ATTRIBUTE, "contiguous", "leave it out: how elements lie in memory is the engine's own matter"},
    {TD_HABIT_ATTRIBUTE, "is_contiguous", "leave it out: how elements lie in memory is the engine's own matter"},
    {TD_HABIT_ATTRIBUTE, "strides", "how elements lie in memory is the engine's own matter; x.shape has the sizes"},
    {TD_HABIT_ATTRIBUTE, "stride", "how elements lie in memory is the engine's own matter; x.shape has the sizes"},
    {TD_HABIT_ATTRIBUTE, "data", "a tensor is its own data: write x, or x.detach() to leave its history behind"},
    {TD_HABIT_ATTRIBUTE, "values", "it is the values already; argmax and argmin give the places, topk and sort both"},
    {TD_HABIT_ATTRIBUTE, "indices", "it is the values alone; argmax and argmin give the places, topk and sort both"},
    {TD_HABIT_ATTRIBUTE, "type", "write x.dtype, or x.astype(float32)"},
    {TD_HABIT_ATTRIBUTE, "half", "write x.astype(float16)"},
    {TD_HABIT_ATTRIBUTE, "copy",
     "leave it out: a tensor is a value, and no operation changes one that somebody else sees"},
    {TD_HABIT_ATTRIBUTE, "t", "write x.T"},
    {TD_HABIT_ATTRIBUTE, "grad_fn", "%tape lists what made a value"},
    {TD_HABIT_ATTRIBUTE, "retain_grad", NO_HOOKS},
    {TD_HABIT_ATTRIBUTE, "register_hook", NO_HOOKS},
    {TD_HABIT_ATTRIBUTE, "dim", "write x.ndim"},
    {TD_HABIT_ATTRIBUTE, "requires_grad_", "write x.requires_grad = True"},
    {TD_HABIT_ATTRIBUTE, "fill_", "tensors are values: write x = full_like(x, value)"},
    {TD_HABIT_ATTRIBUTE, "zero_", "tensors are values: write x = zeros_like(x); a Variable's gradient: v.zero_grad()"},
    {TD_HABIT_ATTRIBUTE, "copy_", "tensors are values: write x = y; a Variable: v.assign(y)"},
    {TD_HABIT_ATTRIBUTE, "normal_",
     "tensors are values: write x = randn(*x.shape); a Variable: v.assign(randn(*v.shape))"},
    {TD_HABIT_ATTRIBUTE, "uniform_",
     "tensors are values: write x = rand(*x.shape); a Variable: v.assign(rand(*v.shape))"},
    {TD_HABIT_CALL, "size",
     "write x.size without () for the number of elements, and x.shape for the sizes: x.shape[0]"},
    {TD_HABIT_KEYWORD, "requires_grad", "write x.requires_grad = True on the next line, or x = Variable(...)"},
    {TD_HABIT_KEYWORD, "device", ONE_DEVICE},
    {TD_HABIT_KEYWORD, "pin_memory", ONE_DEVICE},
    {TD_HABIT_KEYWORD, "non_blocking", ONE_DEVICE},
    {TD_HABIT_KEYWORD, "num_words", "TextVectorization(max_tokens=n) is Keras's layer of the kind"},
    {TD_HABIT_KEYWORD, "layout", "leave it out: how elements lie in memory is the engine's own matter"},
    {TD_HABIT_KEYWORD, "order", "leave it out: how elements lie in memory is the engine's own matter"},
    {TD_HABIT_KEYWORD, "out", "tensors are values: write y = ... with the result"},
    {TD_HABIT_KEYWORD, "inplace", "tensors are values: write x = ... with the result"},
    {TD_HABIT_MODULE, "numpy", "np.array([1., 2.]) is tensor([1., 2.]), np.exp(x) is exp(x)"},
    {TD_HABIT_MODULE, "torch", "torch.exp(x) and F.relu(x) are exp(x) and relu(x), torch.optim.Adam is Adam"},
    {TD_HABIT_MODULE, "tensorflow", "tf.constant([1., 2.]) is tensor([1., 2.]), tf.GradientTape is GradientTape"},
    {TD_HABIT_MODULE, "jax", "jnp.array([1., 2.]) is tensor([1., 2.]), jax.grad(f) is grad(f)"},
    {TD_HABIT_MODULE, "keras", "keras.optimizers.Adam is Adam, keras.losses.MeanSquaredError is MeanSquaredError"},
    {TD_HABIT_MODULE, "scipy", "scipy.special.erf(x) is erf(x), scipy.linalg.solve is solve"},
    {TD_HABIT_MODULE, "pandas", "load_csv reads a table"},
    {TD_HABIT_MODULE, "sklearn", "softmax, cross_entropy, Adam and their like are all here"},
    {TD_HABIT_ABSENT, "matplotlib", "%plot draws curves"},
    {TD_HABIT_ABSENT, "os", FILES},
    {TD_HABIT_ABSENT, "pathlib", FILES},
    {TD_HABIT_ABSENT, "glob", FILES},
    {TD_HABIT_ABSENT, "shutil", FILES},
    {TD_HABIT_ABSENT, "io", FILES},
    {TD_HABIT_ABSENT, "csv", "load_csv(path) and save_csv(path, x) are built in, without an import"},
    {TD_HABIT_ABSENT, "pickle",
     "save(model, path), Checkpoint and save_safetensors(path, tensors) write files, json texts"},
    {TD_HABIT_ABSENT, "sys", "leave it out: argv and exit() are built in"},
    {TD_HABIT_ABSENT, "argparse", "argv is the list of the command's words, the deck's name first"},
    {TD_HABIT_ABSENT, "re",
     "there are no regular expressions: text.split(), .find(), .replace(), .startswith() and in"},
    {TD_HABIT_ABSENT, "string",
     "letters are \"abcdefghijklmnopqrstuvwxyz\"; text.isalpha(), .isdigit() and .upper() ask and change"},
    {TD_HABIT_ABSENT, "collections",
     "a dict counts, counts[x] = counts.get(x, 0) + 1, and gathers, lists.setdefault(x, []).append(y)"},
    {TD_HABIT_ABSENT, "itertools",
     "for loops, comprehensions and zip do what it does: [(a, b) for a in x for b in y]"},
    {TD_HABIT_ABSENT, "functools",
     "a lambda is a partial function, lambda x: f(x, 2); a for loop reduces, a dict caches"},
    {TD_HABIT_ABSENT, "operator", "write a lambda: lambda a, b: a + b, lambda x: x[0]"},
    {TD_HABIT_ABSENT, "copy", "tensors are values and need none; list(x), dict(x) and x.copy() copy what holds them"},
    {TD_HABIT_ABSENT, "typing", "leave it out: annotations are read over, write list, dict or nothing"},
    {TD_HABIT_ABSENT, "dataclasses", "write a class with __init__"},
    {TD_HABIT_ABSENT, "abc", "leave it out: a base class's method raises NotImplementedError"},
    {TD_HABIT_ABSENT, "warnings", "leave it out: print() says it, and logging.warning()"},
    {TD_HABIT_ABSENT, "datetime", "time.time() counts seconds; import time"},
    {TD_HABIT_ABSENT, "tqdm", "progress(items, \"name\") is built in: for i in progress(range(100), \"run\")"},
    {TD_HABIT_ABSENT, "threading", "ops use all cores; ds.map(f, num_parallel_calls=4) runs f in parallel"},
    {TD_HABIT_ABSENT, "multiprocessing", "ops use all cores; ds.map(f, num_parallel_calls=4) runs f in parallel"},
    {TD_HABIT_MEMBER, "random.randrange", "write random.randint(low, high), where high is left out"},
    {TD_HABIT_MEMBER, "random.gauss", "write random.normal(mean, std)"},
    {TD_HABIT_MEMBER, "random.manual_seed", "write random.seed(0)"},
    {TD_HABIT_MEMBER, "random.default_rng", "random.key(seed) makes a key: random.normal((3,), key=key)"},
    {TD_HABIT_MEMBER, "random.RandomState", "random.key(seed) makes a key: random.normal((3,), key=key)"},
    {TD_HABIT_PAIR, "max", "write values, places = max(x, axis=0), argmax(x, axis=0)"},
    {TD_HABIT_PAIR, "min", "write values, places = min(x, axis=0), argmin(x, axis=0)"},
    {TD_HABIT_PAIR, "median", "write values, places = kthvalue(x, (n + 1) // 2, axis=0)"},
    {TD_HABIT_PAIR, "nanmedian", "write values, places = kthvalue(x, (n + 1) // 2, axis=0)"},
    {TD_HABIT_PAIR, "mode", "write argmax(x == mode(x, axis=0), axis=0) for a place of it"},
};

const char *td_habit(enum td_habit place, const char *word) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].place == place && strcmp(rows[i].word, word) == 0) return rows[i].hint;
  return NULL;
}

// ---- names behind modules' names ----

bool td_habit_is_module(const char *name) {
  static const char *const modules[] = {"np", "numpy", "torch", "tf", "tensorflow", "jax", "jnp", "nn", "F", "keras",
                                        "optim", "layers", "optimizers", "losses"};
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (strcmp(name, modules[i]) == 0) return true;
  return false;
}

static bool is_defined(td_interpreter *I, const char *name) {
  td_str *text = td_str_intern(I, name, strlen(name));
  td_value found = text ? td_builtin_find(I, text) : TD_NIL;
  bool defined = !td_is_nil(found);
  td_unref(found);
  td_unref(td_from(text));
  return defined;
}

// The last two names of np.random.normal, as they stand in the source behind np.
typedef struct chain {
  char owner[48], last[48];
} chain;

static bool read_chain(td_interpreter *I, const td_node *module, chain *c) {
  const td_script *script = td_source_find(&I->sources, (td_place)module->script << 32 | module->begin);
  *c = (chain){0};
  if (!script) return false;
  for (uint32_t at = module->end; at < script->length && script->text[at] == '.';) {
    uint32_t length = 0;
    const char *name = script->text + ++at;
    while (at + length < script->length && (isalnum((unsigned char)name[length]) || name[length] == '_')) length++;
    if (!length || length >= sizeof c->last) break;
    memcpy(c->owner, c->last, sizeof c->owner);
    snprintf(c->last, sizeof c->last, "%.*s", (int)length, name);
    at += length;
  }
  return c->last[0];
}

void td_habit_module_hint(td_interpreter *I, const td_node *module, td_list *names) {
  const char *alias = module->name->data;
  chain c;
  if (!read_chain(I, module, &c)) {
    td_raise_hint(I, "its functions are built in: write exp(x) for %s.exp(x), and tensor([1., 2.])", alias);
    return;
  }
  char joined[sizeof c.owner + sizeof c.last + 1];
  snprintf(joined, sizeof joined, "%s_%s", c.owner, c.last);
  td_value raised = td_take_raised(I);
  bool member = c.owner[0] && is_defined(I, joined), itself = is_defined(I, c.last);
  const char *hint = td_habit(TD_HABIT_NAME, c.last), *near = names ? td_suggest(c.last, names) : NULL;
  td_clear_raised(I);
  td_put_raised(I, raised);
  if (itself || member)
    td_raise_hint(I, "names are global here: write %s without %s.", itself ? c.last : joined, alias);
  else if (hint) td_raise_hint(I, "%s", hint);
  else if (near) td_raise_hint(I, "names are global here, without %s.; did you mean '%s'?", alias, near);
  else td_raise_hint(I, "names are global here, without %s.; there is no '%s'", alias, c.last);
}

// ---- attributes of tensors ----

bool td_habit_attribute_hint(td_interpreter *I, td_value v, td_str *name) {
  const char *hint = td_habit(TD_HABIT_ATTRIBUTE, name->data);
  if (hint) return td_raise_hint(I, "%s", hint), true;
  td_value raised = td_take_raised(I);
  bool underscore = name->length > 1 && name->data[name->length - 1] == '_';
  td_str *plain = underscore ? td_str_intern(I, name->data, name->length - 1) : NULL;
  td_value found = plain ? td_attribute_find(I, v, plain) : TD_NIL;
  td_clear_raised(I);
  bool method = !td_is_nil(found), function = !underscore && is_defined(I, name->data);
  td_unref(found);
  td_clear_raised(I);
  td_put_raised(I, raised);
  if (method) td_raise_hint(I, "tensors are values: write x = x.%s(...)", plain->data);
  if (function) td_raise_hint(I, "%s is a function: write %s(x, ...)", name->data, name->data);
  td_unref(td_from(plain));
  return method || function;
}
