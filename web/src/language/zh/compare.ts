/** The compare view. */
import type { compare as en } from "../en/compare";

export const compare: Readonly<Record<keyof typeof en, string>> = {
  "view.compare": "对比",
  "compare.read": "两份记录中的同一位置。差值为 B − A：橙色表示 B 的权重更大，蓝色表示 A 的权重更大。",
  "help.compare.1": "两段只差一个词的文本：差异流向哪里？",
  "help.compare.2": "同一模型的两个检查点：这个头学到了什么？",
  "help.compare.3": "一次运行与它编辑后的版本：编辑在下游改变了什么？",
  "compare.none": "还没有对比对象。请在上方“对比对象”中选择第二份记录，它会并排显示。",
  "compare.loading": "正在读取两张注意力图…",
  "compare.failed": "无法对比这两张注意力图：{why}",
  "compare.difference": "B − A",
  "compare.shapes": "没有差值图：A 为 {aq} 个查询 × {ak} 个键，B 为 {bq} × {bk}，单元格无法对应。",
  "compare.layers": "B 没有第 {layer} 层第 {head} 头，因此没有可并列的内容。",
  "compare.names": "A 为 {a}，B 为 {b}。",
  "compare.tokens": "两边的词元不同：单元格按位置对应，而非按词对应。",
  "compare.largest": "最大差值",
  "compare.mean": "平均绝对差值",
  "compare.means": "每个像素是 {size} × {size} 个权重的两个平均值之差。",
  "compare.seen": "在所有未屏蔽的单元格上",
  "compare.part": "在 {size} × {size} 个权重的平均值上；单个差值可能更大",
  "compare.equal": "两张注意力图的所有权重都相等。",
};
