"""Evaluates every function with its gradients, under DyNet or under the drop-in: python dynet_ops.py FILE [--drop-in]

`test_dynet.py` runs it under both and compares the files.
"""

import json
import sys

import numpy as np

if "--drop-in" in sys.argv:
    import autobatch.dynet

    autobatch.dynet.install()
import dynet as dy

FILE = sys.argv[1]
r=np.random.default_rng(1)
pc=dy.ParameterCollection()
W=pc.add_parameters((3,4)); W.set_value(r.normal(size=(3,4))); b=pc.add_parameters(3); b.set_value(r.normal(size=3))
V=pc.add_parameters((3,3)); V.set_value(r.normal(size=(3,3)))
E=pc.add_lookup_parameters((5,4)); E.init_from_array(r.normal(size=(5,4)))
out={}
def t(name,f):
    dy.renew_cg()
    try:
        e=f(); v=np.asarray(e.npvalue(),dtype=float); 
        s=dy.sum_batches(dy.sum_elems(dy.cmult(e,e))); s.backward()
        out[name]=[list(map(str,e.dim())), v.ravel().tolist(), W.grad_as_array().ravel().tolist(), E.grad_as_array().ravel().tolist()]
        t0.set_learning_rate(1e-12); t0.update()
    except Exception as x: out[name]=["ERR "+type(x).__name__+str(x)[:150]]
t0=dy.SimpleSGDTrainer(pc,1e-12)
x=lambda: E[1]; m=lambda: dy.concatenate_cols([E[0],E[1],E[2]]); B=lambda: dy.lookup_batch(E,[0,1,3]); h=lambda: W*E[2]; hb=lambda: W*B(); wm=lambda: W*m()
for n,f in dict(
 wx=h, wxb=lambda:W*x()+b, wb=hb, wbb=lambda:W*B()+b, wm=wm, wmb=lambda: dy.colwise_add(W*m(),b), vwm=lambda:V*wm(), tr=lambda:dy.transpose(wm()), trx=lambda:dy.transpose(h())*h(), outer=lambda:h()*dy.transpose(h()), tb=lambda:dy.transpose(hb()), inner=lambda:dy.transpose(hb())*hb(),
 mm=lambda: wm()*wm(), mb=lambda: V*hb(), wbm=lambda:(h()*dy.transpose(hb())),
 pick=lambda:dy.pick(h(),1), pickm=lambda:dy.pick(wm(),1), pickm1=lambda:dy.pick(wm(),1,1), pickb=lambda:dy.pick(hb(),2), pb=lambda:dy.pick_batch(hb(),[0,1,2]), pr=lambda:dy.pick_range(h(),0,2), prm=lambda:dy.pick_range(wm(),1,3,1), sl=lambda:h()[0:2], slm=lambda:wm()[1], neg=lambda:h()[-1],
 sm=lambda:dy.softmax(wm()), sm1=lambda:dy.softmax(wm(),d=1), lsm=lambda:dy.log_softmax(h()), smb=lambda:dy.softmax(hb()), pn=lambda:dy.pickneglogsoftmax(h(),1), pnb=lambda:dy.pickneglogsoftmax_batch(hb(),[0,2,1]), hi=lambda:dy.hinge(h(),1), hib=lambda:dy.hinge_batch(hb(),[0,2,1],0.5),
 cat=lambda:dy.concatenate([h(),x(),b]), cat1=lambda:dy.concatenate([dy.pick(h(),0),dy.pick(h(),2)]), catm=lambda:dy.concatenate([wm(),wm()]), catd=lambda:dy.concatenate([wm(),wm()],d=1), catb=lambda:dy.concatenate([hb(),b]), cc=lambda:dy.concatenate_cols([h(),b]), ctb=lambda:dy.concatenate_to_batch([h(),b]), catmix=lambda:dy.concatenate([dy.pick(h(),0),h()]),
 es=lambda:dy.esum([h(),b,h()]), esb=lambda:dy.esum([hb(),b]), av=lambda:dy.average([h(),b]), em=lambda:dy.emax([h(),b]), lse=lambda:dy.logsumexp([h(),b]), lses=lambda:dy.logsumexp([dy.pick(h(),0),dy.pick(h(),1)]), lsed=lambda:dy.logsumexp_dim(wm(),1),
 se=lambda:dy.sum_elems(wm()), seb=lambda:dy.sum_elems(hb()), sb=lambda:dy.sum_batches(hb()), me=lambda:dy.mean_elems(wm()), meb=lambda:dy.mean_batches(hb()), std=lambda:dy.std_elems(h()), stdb=lambda:dy.std_batches(hb()), mo=lambda:dy.moment_elems(h(),3), mob=lambda:dy.moment_batches(hb(),2), sd=lambda:dy.sum_dim(wm(),[0]), sd1=lambda:dy.sum_dim(wm(),[1]), sd01=lambda:dy.sum_dim(wm(),[0,1]), md=lambda:dy.mean_dim(wm(),[1],False), stdd=lambda:dy.std_dim(wm(),[0],False), mxd=lambda:dy.max_dim(wm(),0), mxd1=lambda:dy.max_dim(wm(),1), mnd=lambda:dy.min_dim(wm(),1), cs=lambda:dy.cumsum(h()), cs1=lambda:dy.cumsum(wm(),1),
 dot=lambda:dy.dot_product(h(),b), dotb=lambda:dy.dot_product(hb(),b), sqn=lambda:dy.squared_norm(h()), l2=lambda:dy.l2_norm(h()), sqd=lambda:dy.squared_distance(h(),b), l1=lambda:dy.l1_distance(h(),b), hub=lambda:dy.huber_distance(h(),b), top=lambda:dy.trace_of_product(wm(),V),
 bll=lambda:dy.binary_log_loss(dy.logistic(h()),dy.logistic(b)), prl=lambda:dy.pairwise_rank_loss(dy.pick(h(),0),dy.pick(h(),1)), poi=lambda:dy.poisson_loss(dy.pick(h(),0),3),
 aff=lambda:dy.affine_transform([b,W,x(),V,h()]), affb=lambda:dy.affine_transform([b,W,B(),V,h()]), affm=lambda:dy.affine_transform([b,W,m()]), ln=lambda:dy.layer_norm(h(),b,b), wn=lambda:dy.weight_norm(h(),dy.pick(b,0)),
 add1=lambda:h()+1, radd=lambda:1+h(), sub=lambda:2-h(), mul=lambda:3*h(), div=lambda:h()/2, scal=lambda:h()*dy.pick(b,0), pw=lambda:dy.square(h())**2.0, cd=lambda:dy.cdiv(h(),dy.exp(b)), bmin=lambda:dy.bmin(h(),b), bmax=lambda:dy.bmax(h(),b), cmb=lambda:dy.cmult(hb(),b), cms=lambda:dy.cmult(hb(),dy.pick(hb(),0)), addpick=lambda:hb()+dy.pick(hb(),0),
 rs=lambda:dy.reshape(wm(),(9,)), rsb=lambda:dy.reshape(hb(),(1,3)), rs2=lambda:dy.reshape(h(),(1,3)), rs3=lambda:dy.reshape(h(),(3,1)), sr=lambda:dy.select_rows(wm(),[0,2]), sc=lambda:dy.select_cols(wm(),[0,2]), ss=lambda:dy.strided_select(wm(),[2,1],[0,1],[3,3]), pbe=lambda:dy.pick_batch_elem(hb(),1), pbes=lambda:dy.pick_batch_elems(hb(),[0,2]),
 cast=lambda:dy.rectify(h()), elu=lambda:dy.elu(h()), selu=lambda:dy.selu(h()), silu=lambda:dy.silu(h()), lsig=lambda:dy.log_sigmoid(h()), ssn=lambda:dy.softsign(h()), cube=lambda:dy.cube(h()), tan=lambda:dy.tan(h()), sinh=lambda:dy.sinh(h()), cosh=lambda:dy.cosh(h()), asinh=lambda:dy.asinh(h()), acosh=lambda:dy.acosh(dy.square(h())+1.5), atanh=lambda:dy.atanh(dy.logistic(h())), erf=lambda:dy.erf(h()), abs=lambda:dy.abs(h()), sin=lambda:dy.sin(h()), sqrt=lambda:dy.sqrt(dy.exp(h())), logx=lambda:dy.log(dy.exp(h())), nob=lambda:dy.nobackprop(h())+h(), flip=lambda:dy.flip_gradient(h()), scg=lambda:dy.scale_gradient(h(),0.5),
 rnd=lambda:dy.round(h(),gradient_mode="zero_gradient")+h(), flo=lambda:dy.floor(h(),gradient_mode="zero_gradient")+h(), am=lambda:dy.argmax(h(),gradient_mode="zero_gradient")+h(), kmh=lambda:dy.kmh_ngram(wm(),2), fold=lambda:dy.fold_rows(wm(),3), foldv=lambda:dy.fold_rows(x(),2), kmax=lambda:dy.kmax_pooling(wm(),2), kmax0=lambda:dy.kmax_pooling(wm(),2,0), filt=lambda:dy.filter1d_narrow(wm(),dy.pick_range(V,0,2,1)), circ=lambda:dy.circ_conv(h(),b), corr=lambda:dy.circ_corr(h(),b), c3=lambda:dy.contract3d_1d_1d(dy.reshape(h()*dy.transpose(x()),(3,2,2)),dy.pick_range(h(),0,2),dy.pick_range(h(),1,3)), smax=lambda:dy.sparsemax(h()), lgam=lambda:dy.lgamma(dy.exp(h())), atan=lambda:dy.atan(h()), asin=lambda:dy.asin(dy.tanh(h())*0.9), acos=lambda:dy.acos(dy.tanh(h())*0.9),
 oh=lambda:dy.one_hot(3,1)+b, it=lambda:dy.inputTensor(np.arange(6).reshape(3,2)), itb=lambda:dy.inputTensor(np.arange(6).reshape(3,2),batched=True)+b, im=lambda:dy.inputMatrix([1,2,3,4,5,6],(2,3)), zer=lambda:dy.zeros((3,2)), cst=lambda:dy.constant(3,2.5)+b, wexpr=lambda:W+0, dotW=lambda:W*W[1], wrow=lambda:W[0],
 hidim=lambda:dy.hinge_dim(wm(),[0,1,2],0,1.0)).items(): t(n,f)
for nm in ("VanillaLSTMBuilder","CoupledLSTMBuilder","FastLSTMBuilder","GRUBuilder","SimpleRNNBuilder","CompactVanillaLSTMBuilder"):
  for L in (1,2):
    pc2=dy.ParameterCollection(); bl=getattr(dy,nm)(L,4,3,pc2); rr=np.random.default_rng(5)
    for p in pc2.parameters_list(): p.set_value(rr.normal(size=p.shape()))
    t0=dy.SimpleSGDTrainer(pc,1e-12)
    t(nm+str(L), lambda: dy.concatenate(bl.initial_state().transduce([E[0],E[1],E[2]])))
    t(nm+"b"+str(L), lambda: bl.initial_state().transduce([B(),B()])[-1])
    t(nm+"s"+str(L), lambda: dy.concatenate(list(bl.initial_state().add_input(E[1]).s())+list(bl.initial_state().add_input(E[1]).h())))
    k=2*L if "LSTM" in nm else L
    t(nm+"i"+str(L), lambda: bl.initial_state([b]*k).add_input(E[1]).add_input(E[3]).prev().output())
F=pc.add_parameters((3,2,2,3)); F.set_value(r.normal(size=(3,2,2,3)))
t0=dy.SimpleSGDTrainer(pc,1e-12)
image=lambda: dy.reshape(dy.concatenate([W[0],W[1],W[2],E[0],E[1],E[2],E[3],x()]),(4,4,2))
for valid in (True, False):
  for step in ([1,1],[2,1]):
    t(f"conv{valid}{step}", lambda: dy.conv2d(image(),F,step,valid)); t(f"convb{valid}{step}", lambda: dy.conv2d_bias(image(),F,b,step,valid))
    t(f"pool{valid}{step}", lambda: dy.maxpooling2d(image(),[2,3],step,valid))
bi=dy.BiRNNBuilder(2,4,6,pc,dy.LSTMBuilder)
rr=np.random.default_rng(5)
for p in pc.parameters_list()[3:]: p.set_value(rr.normal(size=p.shape()))
t0=dy.SimpleSGDTrainer(pc,1e-12)
t("bi",lambda: dy.concatenate(bi.transduce([E[0],E[1],E[2]])))
with open(FILE, "w") as file:
    json.dump(out, file)
