#include "sim/page/style.hpp"

namespace tidegate::page {

// Colours after Okabe and Ito 2008 (told apart by colour-blind readers), and two greys.
const char* const style =
    R"(:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;
--panel:#f6f8fa;--accent:#0057a8;--c0:#0072b2;--c1:#e69f00;--c2:#009e73;--c3:#cc79a7;--c4:#56b4e9;
--c5:#d55e00;--c6:#8c8c00;--c7:#6a51a3;--c8:#8a8f98;--c9:#b8bec6;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e6e9ed;--soft:#9aa4b0;--line:#39424d;
--panel:#1c2229;--accent:#7cb8f2;--c0:#4aa3e0;--c1:#f0b93a;--c2:#2fc79a;--c3:#e09bc3;--c4:#8ccaf2;
--c5:#f08040;--c6:#c4c44a;--c7:#a08be0;--c8:#8a939e;--c9:#5d6772;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem 1.25rem 3rem;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.6rem;margin:.5rem 0 .2rem}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line)}
.subtitle,.note,footer,caption,figcaption{color:var(--soft)}
a{color:var(--accent)}.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:.5rem;background:var(--ground)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;margin:.8rem 0;padding:0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin:1rem 0}
.figures>div{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem}
.figures dt{color:var(--soft);font-size:.9rem}.figures dd{margin:0;font-size:1.35rem;font-weight:600}
.figures dd.note{font-size:.85rem;font-weight:400}
.scroll{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;white-space:nowrap;font-size:.9rem;padding:.2rem 0}
th,td{padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
thead th{color:var(--soft);font-weight:600}tbody th{font-weight:500}tbody th.inner{padding-left:1.4rem;font-weight:400;color:var(--soft)}
.number{text-align:right}pre{background:var(--panel);padding:.8rem;overflow-x:auto;border-radius:6px}
figure{margin:1rem 0}svg,.picture{max-width:100%;height:auto}svg text{fill:var(--ink);font:13px system-ui,sans-serif}
svg .soft{fill:var(--soft)}svg .rule{stroke:var(--line)}svg .limit{stroke:var(--bad);stroke-dasharray:6 4}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;padding:0;margin:.3rem 0;font-size:.9rem}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.35rem;vertical-align:-1px}
.lanes{position:relative}.lanes canvas{width:100%;display:block;border:1px solid var(--line);border-radius:6px;cursor:grab}
.lanes .tools{display:flex;gap:.4rem;flex-wrap:wrap;margin:.4rem 0}
button{font:inherit;padding:.2rem .7rem;border:1px solid var(--line);border-radius:6px;background:var(--panel);color:var(--ink)}
.lanes output{display:block;min-height:1.6em;color:var(--soft);font-size:.9rem}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--accent)}
footer{margin-top:3rem;font-size:.85rem}
@media print{body{max-width:none;font-size:11pt}nav,.skip,.tools{display:none}section{break-inside:avoid-page}
details::details-content{content-visibility:visible}.scroll{overflow:visible}}
)";

const char* const script = R"('use strict';
function lanes(root){
const data=JSON.parse(root.querySelector('script').textContent),canvas=root.querySelector('canvas'),
out=root.querySelector('output'),row=22,left=130,top=22;
let from=data.from,to=data.to,hover=null,held=null;
const css=n=>getComputedStyle(document.documentElement).getPropertyValue(n).trim();
const time=s=>{const a=Math.abs(s);return a>=1?s.toFixed(3)+' s':a>=1e-3?(s*1e3).toFixed(3)+' ms':(s*1e6).toFixed(1)+' us'};
const label=(u,step)=>{const [f,n]=step>=1?[1,' s']:step>=1e-3?[1e3,' ms']:[1e6,' us'];return +(u*f).toFixed(3)+n};
function draw(){
const scale=devicePixelRatio||1,w=canvas.clientWidth,h=top+row*data.lanes.length+4;
canvas.style.height=h+'px';canvas.width=w*scale;canvas.height=h*scale;
const g=canvas.getContext('2d');g.scale(scale,scale);g.clearRect(0,0,w,h);
g.font='12px system-ui,sans-serif';g.textBaseline='middle';
const x=t=>left+(t-from)/(to-from)*(w-left),ink=css('--ink'),soft=css('--soft'),line=css('--line');
const palette=[];for(let i=0;i<10;i++)palette.push(css('--c'+i));
const raw=(to-from)/6,p=Math.pow(10,Math.floor(Math.log10(raw))),step=[1,2,5,10].map(f=>f*p).find(s=>s>=raw);
g.fillStyle=soft;g.strokeStyle=line;
for(let u=Math.ceil((from-data.from)/step)*step,t;(t=u+data.from)<=to;u+=step){g.beginPath();g.moveTo(x(t),top-4);g.lineTo(x(t),h);g.stroke();
g.fillText(label(u,step),x(t)+3,10)}
data.lanes.forEach((lane,i)=>{const y=top+i*row;g.fillStyle=ink;g.fillText(lane.name.slice(0,20),4,y+row/2);
let last=-1;for(const b of lane.boxes){if(b[1]<from||b[0]>to)continue;
const a=Math.max(left,x(b[0])),z=Math.min(w,x(b[1]));if(z<=last)continue;last=Math.max(a+.7,z);
g.fillStyle=palette[b[3]%10];g.fillRect(a,y+3,Math.max(.7,z-a),row-6);
if(z-a>40){g.fillStyle='#fff';g.save();g.beginPath();g.rect(a,y,z-a,row);g.clip();g.fillText(data.names[b[2]],a+4,y+row/2);g.restore()}
if(hover===b){g.strokeStyle=ink;g.lineWidth=2;g.strokeRect(a,y+3,Math.max(1,z-a),row-6);g.lineWidth=1;g.strokeStyle=line}}})}
function clamp(){const full=data.to-data.from,least=full*1e-6;let d=Math.min(full,Math.max(least,to-from)),m=(from+to)/2;
from=m-d/2;to=m+d/2;if(from<data.from){to+=data.from-from;from=data.from}if(to>data.to){from-=to-data.to;to=data.to}draw()}
function zoom(f,at){const m=at===undefined?(from+to)/2:at;from=m-(m-from)*f;to=m+(to-m)*f;clamp()}
function move(f){const d=(to-from)*f;from+=d;to+=d;clamp()}
const when=e=>{const r=canvas.getBoundingClientRect();return from+(e.clientX-r.left-left)/(r.width-left)*(to-from)};
canvas.addEventListener('wheel',e=>{if(!e.ctrlKey&&!e.shiftKey&&document.activeElement!==canvas)return;e.preventDefault();zoom(e.deltaY>0?1.25:.8,when(e))},{passive:false});
canvas.addEventListener('pointerdown',e=>{held={x:e.clientX,from,to};canvas.setPointerCapture(e.pointerId)});
canvas.addEventListener('pointerup',()=>{held=null});
canvas.addEventListener('pointermove',e=>{const r=canvas.getBoundingClientRect();
if(held){const d=(held.x-e.clientX)/(r.width-left)*(held.to-held.from);from=held.from+d;to=held.to+d;clamp();return}
const lane=data.lanes[Math.floor((e.clientY-r.top-top)/row)],t=when(e),slack=(to-from)/(r.width-left)*2;
hover=lane?lane.boxes.find(b=>b[0]-slack<=t&&t<=b[1]+slack)||null:null;say(lane);draw()});
function say(lane){out.textContent=hover?data.names[hover[2]]+' on '+lane.name+': '+time(hover[0]-data.from)+' to '+time(hover[1]-data.from)+' ('+time(hover[1]-hover[0])+')':''}
canvas.addEventListener('keydown',e=>{const k={ArrowLeft:()=>move(-.2),ArrowRight:()=>move(.2),'+':()=>zoom(.7),'=':()=>zoom(.7),'-':()=>zoom(1/.7),
Home:()=>{from=data.from;to=data.to;clamp()},'0':()=>{from=data.from;to=data.to;clamp()}}[e.key];if(k){e.preventDefault();k();
out.textContent='showing '+time(from-data.from)+' to '+time(to-data.from)}});
root.querySelectorAll('button').forEach(b=>b.addEventListener('click',()=>({in:()=>zoom(.5),out:()=>zoom(2),left:()=>move(-.4),right:()=>move(.4),
all:()=>{from=data.from;to=data.to;clamp()}})[b.value]()));
addEventListener('resize',draw);matchMedia('(prefers-color-scheme: dark)').addEventListener('change',draw);draw()}
document.querySelectorAll('.lanes').forEach(lanes);
addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true));
)";

}  // namespace tidegate::page
